import { systemClock } from '../clock.ts'
import type { Job } from '../engine/job.ts'
import { insideOf, type Queue } from '../engine/queue.ts'
import type { RunEnd } from '../engine/run-ends.ts'
import { WaitedTooLongError } from '../errors.ts'

/** A run of a job in this process, once Redis knows how it ended. */
export interface RecordedRun {
  readonly job: Job
  /** `retry`: it failed and comes again; `dead`: it is a dead letter. */
  readonly outcome: 'succeeded' | 'retry' | 'throttled' | 'dead'
  /** What the handler returned, of a run that succeeded. */
  readonly result: unknown
  /** What the handler threw, or the reason it was discarded for. */
  readonly error: unknown
  /** Of a retry: after how long it comes again. Of a throttled run: what the upstream asked for, if it did. */
  readonly delayMs: number | undefined
}

/** The runs of one queue in this process, from when it was made. */
export interface RunRecorder {
  /** In the order in which they ended. */
  readonly runs: readonly RecordedRun[]
  /**
   * Resolves with the first run that fits, one that has ended before included; rejects with WaitedTooLongError after `timeoutMs`
   * of real time.
   * @param options - `timeoutMs`: 5,000 unless given.
   */
  until(fits: (run: RecordedRun) => boolean, options?: { timeoutMs?: number }): Promise<RecordedRun>
  /** Records no more. */
  stop(): void
}

const DEFAULT_TIMEOUT_MS = 5_000

/** Records how the jobs of a queue end in this process, and waits for them by signal. Make it before you submit. */
export function recordRuns(queue: Queue): RunRecorder {
  const runs: RecordedRun[] = []
  const waiting = new Set<(run: RecordedRun) => void>()
  const stop = insideOf(queue).ends.listen((end) => {
    const run = runOf(end)
    if (!run) return
    runs.push(run)
    for (const look of waiting) look(run)
  })
  return {
    runs,
    stop,
    until(fits, { timeoutMs = DEFAULT_TIMEOUT_MS } = {}) {
      const known = runs.find(fits)
      if (known) return Promise.resolve(known)
      return new Promise((resolve, reject) => {
        const look = (run: RecordedRun) => {
          if (!fits(run)) return
          cancel()
          waiting.delete(look)
          resolve(run)
        }
        const cancel = systemClock.setTimer(() => {
          waiting.delete(look)
          reject(new WaitedTooLongError({ what: `run of queue "${queue.name}" that was waited for`, timeoutMs }))
        }, timeoutMs)
        waiting.add(look)
      })
    },
  }
}

/** Undefined for what was no run: a job that went back because the worker closed, or nobody knew its type. */
function runOf({ job, result, finish }: RunEnd): RecordedRun | undefined {
  const error = 'error' in result ? result.error : undefined
  switch (finish.outcome) {
    case 'succeeded':
      return {
        job,
        outcome: 'succeeded',
        result: 'value' in result ? result.value : undefined,
        error,
        delayMs: undefined,
      }
    case 'dead':
      return { job, outcome: 'dead', result: undefined, error, delayMs: undefined }
    case 'retry':
    case 'throttled':
      return { job, outcome: finish.outcome, result: undefined, error, delayMs: finish.delayMs }
    default:
      return undefined
  }
}
