import type { Clock } from '../clock.ts'
import { JobTimeoutError, LeaseLostError } from '../errors.ts'
import type { Requests } from '../store/requests.ts'
import { admitJob } from '../store/scripts/admit-job.ts'
import type { Job, LeasedJob } from './job.ts'
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
}

// biome-ignore lint/suspicious/noExplicitAny: a handler says what its payload is; the engine cannot know it.
export type Handler<Payload = any> = (job: Job<Payload>, context: JobContext) => unknown

/** A run of one job: started at once, ended once, by its handler, its time-out or the pool. */
export class JobRun implements JobContext {
  readonly job: LeasedJob
  readonly #clock: Clock
  readonly #requests: Requests
  readonly #onEnd: (run: JobRun, result: RunResult) => void
  /** Until when the grant may be used, by the monotonic clock; undefined: for ever. */
  #freshUntil: number | undefined
  #hasGrant = true
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  #cancelTimer: (() => void) | undefined
  #isEnded = false

  constructor(options: {
    job: LeasedJob
    clock: Clock
    requests: Requests
    freshUntil: number | undefined
    onEnd: (run: JobRun, result: RunResult) => void
  }) {
    this.job = options.job
    this.#clock = options.clock
    this.#requests = options.requests
    this.#freshUntil = options.freshUntil
    this.#onEnd = options.onEnd
  }

  get fence(): string {
    return this.job.fence
  }

  /** Made when it is first asked for: most handlers of short jobs never do. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.#abortReason) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  start(handler: Handler, timeoutMs: number): void {
    this.#cancelTimer = this.#clock.setTimer(() => this.#timeOut(timeoutMs), timeoutMs)
    let returned: unknown
    try {
      returned = handler(this.job, this)
    } catch (error) {
      this.#end(resultOfThrow(error))
      return
    }
    if (!isThenable(returned)) {
      this.#end(resultOfReturn(returned))
      return
    }
    returned.then(
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
    this.#cancelTimer?.()
  }

  async admit(): Promise<void> {
    for (;;) {
      if (this.#abortReason) throw this.#abortReason
      if (this.#hasGrant && (this.#freshUntil === undefined || this.#clock.now() <= this.#freshUntil)) {
        this.#hasGrant = false
        return
      }
      const sentAt = this.#clock.now()
      const { fence, key, standing } = this.job
      const reply = await admitJob(this.#requests, { fence, jobKey: key, standing })
      if (reply.word === 'stale') throw new LeaseLostError({ jobId: this.job.id, fence })
      if (reply.word === 'wait') await this.#sleep(reply.waitMs)
      else {
        // A permit that took too long to arrive is lost; the next one is asked for.
        this.#hasGrant = true
        this.#freshUntil = reply.freshMs === undefined ? undefined : sentAt + reply.freshMs
      }
    }
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.setTimer(resolve, ms))
  }

  #timeOut(jobTimeoutMs: number): void {
    const error = new JobTimeoutError({ jobId: this.job.id, jobTimeoutMs })
    this.abort(error)
    this.#end({ kind: 'failed', error })
  }

  #end(result: RunResult): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#cancelTimer?.()
    this.#onEnd(this, result)
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
}
