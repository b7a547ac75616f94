import type { ActionProgress } from '../index.ts'
import type { ApiClient } from './api-client.ts'
import { CliError } from './cli-error.ts'
import { sayDuration } from './duration.ts'
import type { ExitName } from './exit-codes.ts'
import type { Interruption } from './interruption.ts'
import type { Output } from './output.ts'
import { type Progress, ProgressBars } from './progress-bar.ts'
import { Reconnection } from './reconnection.ts'
import { actionPath } from './server-options.ts'

export interface WatchOptions {
  readonly output: Output
  readonly interruption: Interruption
  /** Undefined: for as long as it takes. */
  readonly timeoutMs: number | undefined
  readonly onProgress?: (progress: ActionProgress) => void
}

/** Shows an action until it ends, over restarts of the server; answers how the command ends. */
export async function watchAction(api: ApiClient, id: string, options: WatchOptions): Promise<ExitName> {
  const { output, interruption, timeoutMs } = options
  const bars = new ProgressBars(output)
  const timer = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const signal = timer === undefined ? interruption.signal : AbortSignal.any([interruption.signal, timer])
  try {
    const last = await followToEnd(api, id, signal, (progress) => {
      options.onProgress?.(progress)
      bars.update([rowOf(id, progress)])
    })
    bars.end([rowOf(id, last)])
    return exitOfEnd(last)
  } catch (error) {
    if (interruption.exit !== undefined) {
      output.talk('Not watching any more; the action goes on.')
      return interruption.exit
    }
    if (timer?.aborted) {
      throw new CliError('waitedTooLong', `${id} did not end within ${sayDuration(timeoutMs ?? 0)}; it goes on`)
    }
    throw error
  }
}

async function followToEnd(
  api: ApiClient,
  id: string,
  signal: AbortSignal,
  onProgress: (progress: ActionProgress) => void,
): Promise<ActionProgress> {
  let last: ActionProgress | undefined
  const reconnection = new Reconnection()
  const onOpen = () => reconnection.answered()
  for (;;) {
    try {
      for await (const { event, data } of api.events(actionPath(id, 'events'), { signal, onOpen })) {
        if (event === 'end' && last !== undefined) return last
        if (event !== 'progress') continue
        last = data as ActionProgress
        onProgress(last)
      }
    } catch (error) {
      reconnection.failed(error)
    }
    await reconnection.pause(signal)
  }
}

function rowOf(id: string, progress: ActionProgress): Progress {
  const { done, total, failed, perSecond, etaMs, state, isSealed } = progress
  return { label: id, done, total: isSealed ? total : undefined, failed, perSecond, etaMs, note: state }
}

function exitOfEnd({ state, failed }: Pick<ActionProgress, 'state' | 'failed'>): ExitName {
  if (state === 'CANCELED') return 'canceled'
  return state === 'FAILED' || failed > 0 ? 'failedJobs' : 'ok'
}
