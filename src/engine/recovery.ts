import { type Clock, isTestClock } from '../clock.ts'

// Whoever was cut off tries to connect again every two seconds at the latest, and a try takes as long as a command may; then
// it renews its leases at once.
const HOLD_OFF_MS = 5_000
// A call that takes this long was held up somewhere, or everything is slow: where it is so all the time, leases that ran out
// are taken back all the same.
const SLOW_MS = 1_000
const SLOW_AT_TIMES_MS = 60_000

/**
 * Whether this process takes back leases that ran out. Not those that ran out because the store was away: their holders live,
 * and will renew them as soon as they can. So no call takes anything back by itself. One that finds such leases is told the
 * server's time, and if the store has answered promptly all along, the calls that follow take them back, for a third of a
 * lease (a second at least): in that time nobody's lease can run out who was able to renew it at its beginning. A call that
 * was held up, and arrives when the store is back, comes too late for it. After an outage, which a process notices by answers
 * that do not come or come late, it holds off for a few seconds, so that all who were cut off with it can renew.
 */
export class Recovery {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #onOutage = new Set<() => void>()
  #untilUs = 0
  /** When the first of the calls was sent that have failed since the last answer. */
  #failingSince: number | undefined
  #heldOffUntil = -Infinity
  /** The first minute counts as slow: a process that starts has much to do. */
  #lastSlowAt: number

  constructor({ clock, leaseMs }: { clock: Clock; leaseMs: number }) {
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#lastSlowAt = clock.now()
  }

  /** For the next call: until when it takes back leases that ran out, by the server's time. */
  get untilUs(): number {
    return this.#untilUs
  }

  /** Calls the listener at the end of each outage, before anything else is sent. */
  onOutage(listener: () => void): void {
    this.#onOutage.add(listener)
  }

  /** A call was not answered. @param sentAt - By the clock, as below. */
  failed(sentAt: number): void {
    this.#failingSince ??= sentAt
  }

  /** A call was answered. */
  answered(sentAt: number): void {
    const since = this.#failingSince ?? sentAt
    this.#failingSince = undefined
    const now = this.#clock.now()
    this.waited(now - since, now)
  }

  /** Something that the store does took it so much longer than it should. */
  waited(ms: number, now = this.#clock.now()): void {
    // While a test moves the time nobody is cut off.
    if (ms < SLOW_MS || isTestClock(this.#clock)) return
    const isRare = now - this.#lastSlowAt > SLOW_AT_TIMES_MS
    this.#lastSlowAt = now
    if (ms < this.#leaseMs / 3 && !isRare) return
    this.#untilUs = 0
    this.#heldOffUntil = now + HOLD_OFF_MS
    for (const listener of this.#onOutage) listener()
  }

  /**
   * Leases have run out that a call has left. Answers in how many milliseconds to call again, which takes them back, or finds
   * them renewed.
   */
  left(atUs: number): number {
    const waitMs = this.#heldOffUntil - this.#clock.now()
    if (waitMs > 0) return waitMs
    this.#untilUs = atUs + Math.round(Math.max(this.#leaseMs / 3, SLOW_MS) * 1_000)
    return 0
  }
}
