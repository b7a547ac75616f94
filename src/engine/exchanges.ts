import type { Requests } from '../store/requests.ts'
import {
  type ClaimReply,
  type ClaimRequest,
  type FinishedJob,
  finishAndClaim,
} from '../store/scripts/finish-and-claim.ts'
import { isStoreAway } from './is-store-away.ts'
import { LAST_WORDS_MS, settledWithin } from './last-words.ts'
import type { Log } from './log.ts'
import { Outbox } from './outbox.ts'
import type { RunEnds } from './run-ends.ts'
import { tellEach } from './tell-each.ts'
import { UntoldJobs } from './untold-jobs.ts'

/** What has ended: see ClaimRequest. */
export interface Told {
  readonly finished: readonly FinishedJob[]
  readonly untold: ReadonlyMap<string, number>
}

interface ExchangeParts {
  readonly queue: string
  readonly requests: Requests
  readonly ends: RunEnds
  readonly log: Log
  /** The store has been told of these, or may never be: their leases are not renewed for them. Once for each. */
  readonly onTold: (finished: readonly FinishedJob[]) => void
  /** What a claim says of the pool as it is at the moment. */
  readonly asking: (wanted: number, told: Told) => ClaimRequest
}

/**
 * What a pool tells the store, and asks it: the jobs that have ended go with the next claim. Nothing that was told in vain
 * is lost: after a failure nobody knows what was stored, so it is told again, and the fence makes sure that it counts once.
 */
export class Exchanges {
  readonly #parts: ExchangeParts
  readonly #outbox = new Outbox()
  readonly #untold = new UntoldJobs()
  /** Those of which it could not be told though it answers. Others get them after their lease, if it stays so. */
  readonly #unrenewed = new Set<FinishedJob>()
  /** Jobs of which the call under way tells. */
  #telling = 0

  constructor(parts: ExchangeParts) {
    this.#parts = parts
  }

  /** The store has confirmed all that has ended. */
  get isAllTold(): boolean {
    return this.#telling === 0 && this.#outbox.size === 0
  }

  get hasToTell(): boolean {
    return this.#outbox.size > 0
  }

  /** There is as much to tell as one call may carry, or as these hands can hold. */
  isFull(hands: number): boolean {
    return this.#outbox.isFull(hands)
  }

  add(finished: FinishedJob): void {
    this.#outbox.add(finished)
  }

  /** Rejects when it failed; what it was to tell is kept. */
  async next(wanted: number): Promise<ClaimReply> {
    const finished = this.#outbox.take()
    this.#telling = finished.length
    try {
      const reply = await this.#call(wanted, finished)
      if (reply.jobs.length > 0) this.#untold.claimed(reply.fence, reply.jobs.length / 2)
      return reply
    } catch (error) {
      this.#untold.lose(finished)
      const left = isStoreAway(error) ? finished : await this.#tellEach(finished)
      if (!isStoreAway(error)) this.#letGo(left)
      this.#outbox.putBack(left)
      throw error
    } finally {
      this.#telling = 0
    }
  }

  /** Tells what is left, and takes this process off the list of those to wake. Says in the log what it could not tell. */
  async last(deadline: number): Promise<void> {
    let left = this.#outbox.size
    let failure: unknown
    const tellAll = async () => {
      do {
        await this.#lastWords(this.#outbox.take())
        left = this.#outbox.size
      } while (left > 0)
    }
    const told = tellAll().catch((error: unknown) => {
      failure = error
    })
    const isSettled = await settledWithin(told, deadline - performance.now())
    if (!isSettled || failure !== undefined) this.#onUnconfirmed(left, failure)
  }

  /** The call under way does not end: what it tells, and what was to follow, is left to the leases. */
  giveUp(): void {
    this.#onUnconfirmed(this.#telling + this.#outbox.size)
  }

  async #call(wanted: number, finished: readonly FinishedJob[], giveUpAfterMs?: number): Promise<ClaimReply> {
    const { requests, ends, asking, onTold } = this.#parts
    const claim = asking(wanted, { finished, untold: this.#untold.take(finished) })
    const reply = await finishAndClaim(requests, claim, giveUpAfterMs)
    onTold(this.#unrenewed.size === 0 ? finished : finished.filter((job) => !this.#unrenewed.delete(job)))
    ends.stored(finished, reply.stale)
    return reply
  }

  async #lastWords(finished: readonly FinishedJob[]): Promise<void> {
    try {
      await this.#call(0, finished, LAST_WORDS_MS)
    } catch (error) {
      if (isStoreAway(error) || finished.length === 0) throw error
      const left = await this.#tellEach(finished, LAST_WORDS_MS)
      if (left.length > 0) throw error
    }
  }

  #tellEach(finished: readonly FinishedJob[], giveUpAfterMs?: number): Promise<readonly FinishedJob[]> {
    return tellEach(finished, {
      tell: async (jobs) => {
        await this.#call(0, jobs, giveUpAfterMs)
      },
      onUntellable: (job, error) => this.#onUntellable(job, error),
    })
  }

  #onUntellable(job: FinishedJob, error: unknown): void {
    const { queue, log } = this.#parts
    const { jobKey, finish } = job
    this.#letGo([job])
    this.#unrenewed.delete(job)
    log({
      level: 'error',
      event: 'worker.untellable-job',
      message: `What became of job "${jobKey}" of queue "${queue}" (${finish.outcome}) could not be stored; it runs again after its lease.`,
      job: jobKey,
      error,
    })
  }

  #letGo(finished: readonly FinishedJob[]): void {
    const renewed = finished.filter((job) => !this.#unrenewed.has(job))
    for (const job of renewed) this.#unrenewed.add(job)
    this.#parts.onTold(renewed)
  }

  #onUnconfirmed(jobs: number, error?: unknown): void {
    const { queue, log } = this.#parts
    if (jobs === 0) return
    log({
      level: 'warn',
      event: 'worker.close-unconfirmed',
      message: `Could not tell Redis about ${jobs} jobs of queue "${queue}" while closing; they run again after their lease.`,
      ...(error === undefined ? {} : { error }),
    })
  }
}
