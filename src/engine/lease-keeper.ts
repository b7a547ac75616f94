import type { Clock } from '../clock.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { renewLeases } from '../store/scripts/renew-leases.ts'
import { LastingError } from './lasting-error.ts'
import type { Log } from './log.ts'

/**
 * Renews the leases of all claims of one process, every third of a lease and in one call. A claim whose lease turns out
 * to be lost is told so; it is no longer renewed.
 */
export class LeaseKeeper {
  readonly #redis: Redis
  readonly #requests: Requests
  readonly #leaseMs: number
  readonly #clock: Clock
  readonly #onLost: (fence: string) => void
  readonly #lastingError: LastingError
  /** Jobs still held under each fence. */
  readonly #held = new Map<string, number>()
  #cancelTimer: (() => void) | undefined

  constructor(options: {
    redis: Redis
    requests: Requests
    leaseMs: number
    clock: Clock
    log: Log
    queue: string
    onLost: (fence: string) => void
  }) {
    this.#redis = options.redis
    this.#requests = options.requests
    this.#leaseMs = options.leaseMs
    this.#clock = options.clock
    this.#onLost = options.onLost
    this.#lastingError = new LastingError(options.log, {
      event: 'worker.leases-unrenewed',
      message: `The leases of running jobs of queue "${options.queue}" cannot be renewed; they run again elsewhere`,
    })
  }

  hold(fence: string, jobs: number): void {
    this.#held.set(fence, jobs)
    this.#cancelTimer ??= this.#clock.setTimer(() => void this.#renew(), this.#leaseMs / 3)
  }

  /** One job of the claim has ended. */
  drop(fence: string): void {
    const left = (this.#held.get(fence) ?? 0) - 1
    if (left > 0) this.#held.set(fence, left)
    else this.#held.delete(fence)
  }

  close(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#held.clear()
  }

  async #renew(): Promise<void> {
    const fences = [...this.#held.keys()]
    if (fences.length > 0) {
      try {
        const lost = await renewLeases(this.#redis, this.#requests.keys, {
          client: this.#requests.client,
          leaseMs: this.#leaseMs,
          fences,
        })
        this.#lastingError.mended()
        for (const fence of lost) {
          if (this.#held.delete(fence)) this.#onLost(fence)
        }
      } catch (error) {
        // The next round tries again, and the store decides what is still ours.
        this.#lastingError.failed(error)
      }
    }
    if (this.#cancelTimer === undefined) return
    this.#cancelTimer =
      this.#held.size > 0 ? this.#clock.setTimer(() => void this.#renew(), this.#leaseMs / 3) : undefined
  }
}
