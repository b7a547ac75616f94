import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from './problem.ts'

export interface SseMessage {
  readonly event: string
  readonly data: unknown
  /** What the client sends as Last-Event-ID when it comes again. */
  readonly id?: string
}

/** A client that lost its stream comes again after this long. */
const RETRY_MS = 2_000

/** The streams of events that are open: bounded in number, and ended together when the server closes. */
export class OpenStreams {
  readonly #most: number
  readonly #heartbeatMs: number
  readonly #open = new Set<AbortController>()
  #isClosing = false

  constructor({ most, heartbeatMs }: { most: number; heartbeatMs: number }) {
    this.#most = most
    this.#heartbeatMs = heartbeatMs
  }

  get count(): number {
    return this.#open.size
  }

  /**
   * Answers with a stream of events until they end, the client goes, or the server closes.
   * @param source - Makes the events; ends when its signal is aborted.
   */
  send(request: FastifyRequest, reply: FastifyReply, source: (signal: AbortSignal) => AsyncIterable<SseMessage>) {
    if (this.#isClosing) throw new Problem('unavailable', 'The server is closing.', { retryAfterSeconds: 2 })
    if (this.#open.size >= this.#most) {
      throw new Problem('too-many-requests', `${this.#most} streams of events are open, which is all there may be.`, {
        retryAfterSeconds: 10,
      })
    }
    const controller = new AbortController()
    this.#open.add(controller)
    const end = () => {
      this.#open.delete(controller)
      controller.abort()
    }
    request.raw.once('close', end)
    const frames = Readable.from(framesOf(source(controller.signal), this.#heartbeatMs, controller.signal), {
      objectMode: false,
    })
    frames.once('close', end)
    return reply
      .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
      .type('text/event-stream; charset=utf-8')
      .send(frames)
  }

  close(): void {
    this.#isClosing = true
    for (const controller of this.#open) controller.abort()
  }
}

async function* framesOf(
  source: AsyncIterable<SseMessage>,
  heartbeatMs: number,
  signal: AbortSignal,
): AsyncGenerator<string> {
  yield `retry: ${RETRY_MS}\n\n`
  const messages = source[Symbol.asyncIterator]()
  const aborted = new Promise<'aborted'>((resolve) => {
    signal.addEventListener('abort', () => resolve('aborted'), { once: true })
  })
  let next = messages.next()
  try {
    while (!signal.aborted) {
      let timer: NodeJS.Timeout | undefined
      const silence = new Promise<'silence'>((resolve) => {
        timer = setTimeout(() => resolve('silence'), heartbeatMs)
      })
      const first = await Promise.race([next, silence, aborted]).finally(() => clearTimeout(timer))
      if (first === 'aborted') return
      if (first === 'silence') {
        yield ': nothing new\n\n'
        continue
      }
      if (first.done) return
      yield frameOf(first.value)
      next = messages.next()
    }
  } finally {
    // What the source still had on its way when the stream ended is nobody's any more, and neither are its complaints.
    next.catch(() => {})
    messages.return?.().catch(() => {})
  }
}

/** JSON has no line ends, so one line of data is enough; ids and events are ours and have none either. */
function frameOf({ event, id, data }: SseMessage): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}
