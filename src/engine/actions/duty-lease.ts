import type { Clock } from '../../clock.ts'

/**
 * Keeps a duty while somebody does it: renewed every third of a lease, one renewal at a time. Each renewal changes the fence,
 * so that whoever is done waits for the one under way: with the fence from before it the duty would seem lost.
 */
export class DutyLease {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #renew: (fence: string) => Promise<string | undefined>
  readonly #onLost: () => void
  #fence: string
  #renewing: Promise<void> | undefined
  #cancelTimer: (() => void) | undefined
  #isReleased = false

  /**
   * @param parts - `renew` answers the next fence, undefined when the duty is somebody else's, or nobody's any more; rejects
   * if nobody knows.
   */
  constructor(parts: {
    clock: Clock
    leaseMs: number
    fence: string
    renew: (fence: string) => Promise<string | undefined>
    onLost: () => void
  }) {
    this.#clock = parts.clock
    this.#leaseMs = parts.leaseMs
    this.#fence = parts.fence
    this.#renew = parts.renew
    this.#onLost = parts.onLost
    this.#renewLater()
  }

  /** No more renewals. Answers the fence under which the duty is held now. */
  async release(): Promise<string> {
    this.#isReleased = true
    this.#cancelTimer?.()
    await this.#renewing
    return this.#fence
  }

  #renewLater(): void {
    this.#cancelTimer = this.#clock.setTimer(() => {
      this.#renewing = this.#renewNow()
    }, this.#leaseMs / 3)
  }

  async #renewNow(): Promise<void> {
    try {
      const fence = await this.#renew(this.#fence)
      if (fence === undefined) {
        this.#onLost()
        return
      }
      this.#fence = fence
    } catch {
      // The store could not be asked: it is asked again, and says then whether the duty is still held.
    }
    if (!this.#isReleased) this.#renewLater()
  }
}
