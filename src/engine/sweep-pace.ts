import type { Clock } from '../clock.ts'

// What was earned and not taken is kept for so long: whoever was held up catches up with no more than that at once.
const KEPT_MS = 1_000

/**
 * How many letters may be taken by now, at a rate. The instant of the next goes along with a sweep's cursor, so that the rate
 * holds over all requests of a walk. By the date: whoever goes on may be another process.
 */
export class SweepPace {
  readonly #clock: Clock
  readonly #everyMs: number
  #nextAt: number

  /** @param nextAt - When the next letter is earned, as a cursor says it, in ms since 1970. Now, for the first of a walk. */
  constructor(clock: Clock, perMs: number, nextAt = clock.date()) {
    this.#clock = clock
    this.#everyMs = 1 / perMs
    this.#nextAt = nextAt
  }

  get nextAt(): number {
    return Math.ceil(this.#nextAt)
  }

  /** Letters. */
  earned(): number {
    const waitMs = this.waitMs()
    return waitMs > 0 ? 0 : Math.floor(-waitMs / this.#everyMs) + 1
  }

  /** Until the next is earned; negative since then. */
  waitMs(): number {
    const now = this.#clock.date()
    // Neither a clock that was set nor a cursor that somebody made up counts for more.
    this.#nextAt = Math.min(Math.max(this.#nextAt, now - KEPT_MS), now + this.#everyMs)
    return this.#nextAt - now
  }

  take(letters: number): void {
    this.#nextAt += letters * this.#everyMs
  }
}
