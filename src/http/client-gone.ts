import type { FastifyReply } from 'fastify'
import { Problem } from './problem.ts'

/**
 * Aborted when the client goes away before it has its answer, or with `cut`: what is done for it alone, such as waiting for
 * room in a queue, need not go on.
 */
export function untilGone({ raw }: FastifyReply, cut: AbortSignal): AbortSignal {
  const controller = new AbortController()
  if (raw.destroyed) {
    controller.abort(clientGone())
    return controller.signal
  }
  const onCut = () => controller.abort(cut.reason)
  cut.addEventListener('abort', onCut, { once: true })
  if (cut.aborted) onCut()
  raw.once('close', () => {
    cut.removeEventListener('abort', onCut)
    if (!raw.writableFinished) {
      controller.abort(clientGone())
    }
  })
  return controller.signal
}

/** Whoever waits for the end of an answer whose connection is gone waits for ever: its `close` is past. */
export function refuseIfGone({ raw }: FastifyReply): void {
  if (raw.destroyed) throw clientGone()
}

function clientGone(): Problem {
  return new Problem('invalid-request', 'The client went away before it was answered.')
}
