import type { Clock } from '../clock.ts'
import { LeaseLostError } from '../errors.ts'
import type { Requests } from '../store/requests.ts'
import { admitJob } from '../store/scripts/admit-job.ts'
import type { LeasedJob } from './job.ts'
import { pauseFor } from './pause-for.ts'

/** The permits a job was claimed with, good for one call within some milliseconds; further ones are asked for. */
export class Grant {
  readonly #job: LeasedJob
  readonly #clock: Clock
  readonly #requests: Requests
  /** Until when it may be used, by the monotonic clock; undefined: for ever. */
  #freshUntil: number | undefined
  #isUnused = true

  constructor(options: { job: LeasedJob; clock: Clock; requests: Requests; freshUntil: number | undefined }) {
    this.#job = options.job
    this.#clock = options.clock
    this.#requests = options.requests
    this.#freshUntil = options.freshUntil
  }

  /**
   * Resolves when the limits allow a call now. Rejects with a LeaseLostError when the job is no longer the caller's, and
   * with the signal's reason when that is aborted.
   */
  async admit(signal?: AbortSignal): Promise<void> {
    for (;;) {
      signal?.throwIfAborted()
      if (this.#isUnused && (this.#freshUntil === undefined || this.#clock.now() <= this.#freshUntil)) {
        this.#isUnused = false
        return
      }
      const sentAt = this.#clock.now()
      const { id, fence, key: jobKey, standing } = this.#job
      const reply = await admitJob(this.#requests, { fence, jobKey, standing })
      if (reply.word === 'stale') throw new LeaseLostError({ jobId: id, fence })
      if (reply.word === 'wait') await pauseFor(this.#clock, reply.waitMs, signal)
      else {
        // A permit that takes too long to arrive is lost; the next one is asked for.
        this.#isUnused = true
        this.#freshUntil = reply.freshMs === undefined ? undefined : sentAt + reply.freshMs
      }
    }
  }
}
