import type { Clock } from '../clock.ts'
import { JobTimeoutError } from '../errors.ts'
import type { Pushback } from '../limits/upstream-answer.ts'
import type { Requests } from '../store/requests.ts'
import { Grant } from './grant.ts'
import type { GrantedBy, Job, LeasedJob } from './job.ts'
import { type Answer, Lessons } from './lesson.ts'
import { type RunResult, resultOfReturn, resultOfThrow } from './outcome.ts'

/** What a handler gets beside its job. */
export interface JobContext {
  /** Aborted when the job runs too long, its lease is lost, it is cancelled or the worker must stop; `reason` says which. */
  readonly signal: AbortSignal
  /** Larger for every claim: give it to whatever must not be written by a worker that has lost its job. */
  readonly fence: string
  /**
   * Await it just before each call to the upstream, unless the handler makes its one call at once: it makes sure that the
   * limits allow a call *now*. The job's own grant is used up first; further calls are charged.
   */
  admit(): Promise<void>
  /** Which member of a pool granted the job, by the limit's name: use that one's token. */
  readonly grant: GrantedBy
  /**
   * Tells the limits what an answer of the upstream says: what is left of its quota, or that it pushed back. Answers the
   * pushback, if it is one, for `throttled(…)`. `httpRequest` does this by itself.
   */
  learn(answer: Answer): Pushback | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a handler says what its payload is; the engine cannot know it.
export type Handler<Payload = any> = (job: Job<Payload>, context: JobContext) => unknown

/** What the runs of one claim have in common. */
export interface RunSetting {
  readonly clock: Clock
  readonly requests: Requests
  /** Until when the grants of the claim keep, by the monotonic clock; undefined: for ever. */
  readonly freshUntil: number | undefined
  readonly onEnd: (run: JobRun, result: RunResult) => void
}

/**
 * A run of one job: started at once, ended once, by its handler, its time-out or the pool. Thousands are made in a second:
 * what most handlers never ask for (a signal, a grant for another call) is made when they do.
 */
export class JobRun implements JobContext {
  readonly job: LeasedJob
  /** By the monotonic clock. */
  readonly startedAt: number
  readonly timeoutMs: number
  readonly #isTimeoutGiven: boolean
  /** Kept by `Runs`. */
  place = 0
  readonly #setting: RunSetting
  #grant: Grant | undefined
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #lessons: Lessons | undefined
  #isEnded = false

  /** @param times - `isTimeoutGiven`: by the processor, unless the job has one of its own. */
  constructor(
    job: LeasedJob,
    setting: RunSetting,
    times: { startedAt: number; timeoutMs: number; isTimeoutGiven?: boolean },
  ) {
    this.job = job
    this.startedAt = times.startedAt
    this.timeoutMs = times.timeoutMs
    this.#isTimeoutGiven = times.isTimeoutGiven ?? false
    this.#setting = setting
  }

  get fence(): string {
    return this.job.fence
  }

  get grant(): GrantedBy {
    return this.job.grant
  }

  /** What its upstream taught. */
  get lessons(): Lessons | undefined {
    return this.#lessons
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#abortReason) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  start(handler: Handler): void {
    let result: RunResult
    try {
      const returned = handler(this.job, this)
      if (isThenable(returned)) {
        this.#endWith(returned)
        return
      }
      result = resultOfReturn(returned)
    } catch (error) {
      result = resultOfThrow(error)
    }
    this.#end(result)
  }

  #endWith(returned: PromiseLike<unknown>): void {
    // A promise is taken as it is; the `then` of anything else may throw, and is not called in the middle of a claim.
    Promise.resolve(returned).then(
      (value) => this.#end(resultOfReturn(value)),
      (error: unknown) => this.#end(resultOfThrow(error)),
    )
  }

  abort(reason: Error): void {
    if (this.#isEnded || this.#abortReason) return
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }

  /** The pool takes the job away: whatever the handler still does, it no longer counts. */
  forsake(): void {
    this.#isEnded = true
  }

  admit(): Promise<void> {
    this.#grant ??= new Grant({ job: this.job, ...this.#setting })
    return this.#grant.admit(this.signal)
  }

  learn(answer: Answer): Pushback | undefined {
    this.#lessons ??= new Lessons()
    return this.#lessons.learn(answer, this.#setting.clock.date())
  }

  timeOut(): void {
    const own = this.job.record.options.timeoutMs !== undefined ? 'timeoutMs of the job' : undefined
    const option = own ?? (this.#isTimeoutGiven ? 'timeoutMs of its processor' : 'jobTimeoutMs of its queue')
    const error = new JobTimeoutError({ jobId: this.job.id, jobTimeoutMs: this.timeoutMs, option })
    this.abort(error)
    this.#end({ kind: 'failed', error })
  }

  #end(result: RunResult): void {
    if (this.#isEnded) return
    this.#isEnded = true
    if (result.kind === 'throttled') {
      this.#lessons ??= new Lessons()
      this.#lessons.pushedBack(result.retryAfterMs)
    }
    this.#setting.onEnd(this, result)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
