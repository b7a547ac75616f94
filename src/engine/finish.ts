import { encodeError } from '../store/record.ts'
import type { Finish, FinishedInAction, FinishedJob, Lesson } from '../store/scripts/finish-and-claim.ts'
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

/** What goes to the store. Thousands a second are plain: what they do not have is left out. */
export function finishedJob(
  job: LeasedJob,
  finish: Finish,
  action: FinishedInAction | undefined,
  lesson: Lesson | undefined,
): FinishedJob {
  const { fence, key: jobKey, place, standing } = job
  if (!job.isSpecial && !lesson) {
    return action ? { fence, jobKey, place, standing, finish, action } : { fence, jobKey, place, standing, finish }
  }
  const member = lesson && memberFor(job, lesson)
  return {
    fence,
    jobKey,
    place,
    standing,
    finish,
    ...(action ? { action } : {}),
    ...(job.isSpecial ? { isSpecial: true } : {}),
    ...(lesson ? { lesson: member === undefined ? lesson : { ...lesson, member } } : {}),
  }
}

/** Whose budget it was: of the pool that is named, or of the only one. */
function memberFor({ grant }: LeasedJob, { upstream }: Lesson): string | undefined {
  return grant[upstream] ?? Object.values(grant)[0]
}

/** What the action of a job is told of a run with which the job has ended; undefined for any other run. */
export function toldOf(
  job: LeasedJob,
  result: RunResult,
  finish: Finish,
  run: { readonly durationMs: number; readonly endedAt: number; readonly maxResultBytes: number },
): FinishedInAction | undefined {
  if (job.actionLane === '' || (finish.outcome !== 'succeeded' && finish.outcome !== 'dead')) return undefined
  const { throttles } = job.record.history
  const told = { attempts: job.attempt, throttles, durationMs: run.durationMs }
  return { ...told, result: job.keepsResult ? resultLine(job, result, finish, run) : '' }
}

/** One line of the action's results: see JobResult. */
function resultLine(
  job: LeasedJob,
  result: RunResult,
  finish: Finish,
  { durationMs, endedAt, maxResultBytes }: { durationMs: number; endedAt: number; maxResultBytes: number },
): string {
  const { id, attempt: attempts } = job
  const measured = { attempts, durationMs: Math.round(durationMs * 100) / 100, endedAt }
  if (finish.outcome === 'dead') {
    return JSON.stringify({ id, state: 'failed', error: JSON.parse(finish.error) as unknown, ...measured })
  }
  const value = result.kind === 'succeeded' ? jsonOf(result.value) : undefined
  const bytes = value === undefined ? 0 : Buffer.byteLength(value)
  const line = JSON.stringify({
    id,
    state: 'succeeded',
    ...measured,
    ...(bytes > maxResultBytes ? { resultBytes: bytes } : {}),
  })
  return value === undefined || bytes > maxResultBytes ? line : `${line.slice(0, -1)},"result":${value}}`
}

/** A result that JSON cannot hold is no reason to run the job again: it is kept as what was wrong with it. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (error) {
    return JSON.stringify({ unwritable: (error as Error).message })
  }
}
