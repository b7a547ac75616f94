import type { Clock } from '../clock.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { renewLeases } from '../store/scripts/renew-leases.ts'
import { LastingError } from './lasting-error.ts'
import type { Log } from './log.ts'
import type { Recovery } from './recovery.ts'

/**
 * Renews the leases of all claims of one process, every third of a lease and in one call; also of claims whose jobs have
 * ended, until the store has been told of them. A claim whose lease turns out to be lost is told so; it is no longer renewed.
 */
export class LeaseKeeper {
  readonly #redis: Redis
  readonly #requests: Requests
  readonly #leaseMs: number
  readonly #clock: Clock
  readonly #recovery: Recovery
  readonly #onLost: (fence: string) => void
  readonly #lastingError: LastingError
  /** Jobs under each fence of which the store has not been told. */
  readonly #held = new Map<string, number>()
  #cancelTimer: (() => void) | undefined
  #underWay: Promise<void> | undefined
  #isClosed = false

  constructor(options: {
    redis: Redis
    requests: Requests
    leaseMs: number
    clock: Clock
    log: Log
    queue: string
    recovery: Recovery
    onLost: (fence: string) => void
  }) {
    this.#redis = options.redis
    this.#requests = options.requests
    this.#leaseMs = options.leaseMs
    this.#clock = options.clock
    this.#recovery = options.recovery
    this.#onLost = options.onLost
    this.#lastingError = new LastingError(options.log, {
      event: 'worker.leases-unrenewed',
      message: `The leases of running jobs of queue "${options.queue}" cannot be renewed; they run again elsewhere`,
    })
  }

  hold(fence: string, jobs: number): void {
    // A claim that is answered after the end is left to its lease.
    if (this.#isClosed) return
    this.#held.set(fence, jobs)
    this.#cancelTimer ??= this.#clock.setTimer(() => void this.#renewAndGoOn(), this.#leaseMs / 3)
  }

  /** The store has been told of one job of the claim. */
  drop(fence: string): void {
    const left = (this.#held.get(fence) ?? 0) - 1
    if (left > 0) this.#held.set(fence, left)
    else this.#held.delete(fence)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#held.clear()
  }

  /** Besides the regular times: the store was away, and is back. One call at a time. Does not reject. */
  renew(): Promise<void> {
    this.#underWay ??= this.#renewAll().finally(() => {
      this.#underWay = undefined
    })
    return this.#underWay
  }

  async #renewAll(): Promise<void> {
    const fences = [...this.#held.keys()]
    if (fences.length === 0) return
    const { client, keys } = this.#requests
    try {
      const renewal = { client, leaseMs: this.#leaseMs, fences }
      const lost = await this.#recovery.watch(() => renewLeases(this.#redis, keys, renewal))
      this.#lastingError.mended()
      for (const fence of lost) {
        if (this.#held.delete(fence)) this.#onLost(fence)
      }
    } catch (error) {
      // The next round tries again, and the store decides what is still ours.
      this.#lastingError.failed(error)
    }
  }

  async #renewAndGoOn(): Promise<void> {
    await this.renew()
    if (this.#cancelTimer === undefined) return
    this.#cancelTimer =
      this.#held.size > 0 ? this.#clock.setTimer(() => void this.#renewAndGoOn(), this.#leaseMs / 3) : undefined
  }
}
