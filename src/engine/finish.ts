import { encodeError } from '../store/record.ts'
import type { Finish } from '../store/scripts/finish-and-claim.ts'
import type { LeasedJob } from './job.ts'
import type { RunResult } from './outcome.ts'
import { retryDelayMs, throttleDelayMs } from './retry.ts'

/** What is allowed to go wrong with a job before it is a dead letter. */
export interface Patience {
  readonly maxRetries: number
  readonly maxThrottles: number
}

const succeeded: Finish = { outcome: 'succeeded' }

/** What the store is told of a run: the job's own options count more than the processor's or the queue's. */
export function finishOf(job: LeasedJob, result: RunResult, patience: Patience): Finish {
  const { history, options } = job.record
  switch (result.kind) {
    case 'succeeded':
      return succeeded
    case 'discarded':
      return { outcome: 'dead', reason: 'discarded', error: encodeError(result.error) }
    case 'failed': {
      const error = encodeError(result.error)
      if (history.attempts >= (options.maxRetries ?? patience.maxRetries))
        return { outcome: 'dead', reason: 'failed', error }
      return { outcome: 'retry', delayMs: retryDelayMs(history.attempts), error }
    }
    case 'throttled': {
      if (history.throttles >= patience.maxThrottles) {
        const error = encodeError(new Error(`the upstream pushed back ${history.throttles + 1} times`))
        return { outcome: 'dead', reason: 'throttled', error }
      }
      return { outcome: 'throttled', delayMs: throttleDelayMs(result.retryAfterMs) }
    }
  }
}
