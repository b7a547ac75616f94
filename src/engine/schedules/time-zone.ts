import { wallClockOffset } from '../../limits/wall-clock.ts'

/**
 * Clocks on the wall. A wall time is what a clock of the zone shows, as ms since 1970 as if it showed UTC: arithmetic on
 * it is that of the calendar, and a day always has 24 hours. Where clocks are put on, wall times are left out; where they
 * are put back, wall times come twice.
 */
export class TimeZone {
  readonly #offset: (instant: number) => number

  /** @param name - Of the IANA data base, such as `Europe/Berlin`. @throws RangeError if there is none of that name. */
  constructor(name: string) {
    this.#offset = wallClockOffset(name)
  }

  wallTime(instant: number): number {
    return instant + this.#offset(instant)
  }

  /**
   * When clocks first show this: of two such moments the first. Where it is left out, the moment at which clocks are put
   * on; so that later wall times never come earlier.
   */
  instantOf(wall: number): number {
    // No clock is more than a day away from UTC, and none is changed twice within two days.
    const before = this.#offset(wall - DAY_MS)
    const after = this.#offset(wall + DAY_MS)
    if (this.#offset(wall - before) === before) return wall - before
    if (this.#offset(wall - after) === after) return wall - after
    return this.#change(wall - after, wall - before)
  }

  /** The moment between the two from which the offset is another. */
  #change(from: number, to: number): number {
    let [low, high] = [from, to]
    const before = this.#offset(low)
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#offset(middle) === before) low = middle
      else high = middle
    }
    return high
  }
}

const DAY_MS = 86_400_000
