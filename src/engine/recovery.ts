import { type Clock, isTestClock } from '../clock.ts'
import { isStoreSilent } from './is-store-away.ts'

// Whoever was cut off tries to connect again every two seconds at the latest, and a try takes as long as a command may; then
// it renews its leases at once.
const HOLD_OFF_MS = 5_000
// A call that takes this long was held up somewhere, or everything is slow: where it is so all the time, leases that ran out
// are taken back all the same.
const SLOW_MS = 1_000
const SLOW_AT_TIMES_MS = 60_000
// For how long a call may take back what the one before it found: it follows at once.
const LONGEST_GRANT_MS = 5_000
// After so many tries in vain leases are taken back whatever happens: where everything is slow, nobody may wait for ever.
const TRIES = 5

/**
 * Whether this process takes back leases that ran out. Not those that ran out because the store was away: their holders live,
 * and will renew them as soon as they can. So no call takes anything back by itself. One that finds such leases is told the
 * server's time, and if the store has answered promptly all along, the calls that follow take them back, for a third of a
 * lease (a second at least, five at most): in that time nobody's lease can run out who was able to renew it at its beginning.
 * A call that was held up, and arrives when the store is back, comes too late for it. After an outage, which a process
 * notices by answers that do not come or come late, it holds off for a few seconds, so that all who were cut off with it can
 * renew. Where that happens again and again, leases that nobody renews are taken back all the same.
 */
export class Recovery {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #onOutage = new Set<() => void>()
  #untilUs: number | undefined = 0
  /** The last answer has left some. */
  #hasLeft = false
  /** How often it should have taken these back since, and did not. */
  #inVain = 0
  #grantedAt = -Infinity
  /** When the latest of the calls was sent that were answered. */
  #answeredSentAt = -Infinity
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

  /** For the next call: until when it takes back leases that ran out, by the server's time; undefined: whenever it comes. */
  get untilUs(): number | undefined {
    return this.#untilUs
  }

  /** Calls the listener at the end of each outage, before anything else is sent. */
  onOutage(listener: () => void): void {
    this.#onOutage.add(listener)
  }

  /** Makes a call, and notes how the store answers. */
  async watch<Reply>(call: () => Promise<Reply>): Promise<Reply> {
    const sentAt = this.#clock.now()
    try {
      const reply = await call()
      this.#answered(sentAt)
      return reply
    } catch (error) {
      if (isStoreSilent(error)) this.#failed(sentAt)
      throw error
    }
  }

  #failed(sentAt: number): void {
    // One that was sent later has been answered meanwhile.
    if (sentAt < this.#answeredSentAt) return
    this.#failingSince ??= sentAt
  }

  #answered(sentAt: number): void {
    const since = this.#failingSince ?? sentAt
    this.#failingSince = undefined
    this.#answeredSentAt = Math.max(this.#answeredSentAt, sentAt)
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
    // What several calls notice is one outage.
    if (now >= this.#heldOffUntil) {
      if (this.#hasLeft) this.#inVain += 1
      this.#heldOffUntil = now + HOLD_OFF_MS
    }
    if (this.#inVain < TRIES) this.#untilUs = 0
    for (const listener of this.#onOutage) listener()
  }

  /**
   * What an answer says of leases that ran out: when it left some, by the server's time. Answers in how many milliseconds to
   * call again, which takes them back, or finds them renewed; undefined where none were left.
   */
  left(atUs: number | undefined): number | undefined {
    if (atUs === undefined) {
      this.#untilUs ??= 0
      this.#hasLeft = false
      this.#inVain = 0
      return undefined
    }
    this.#hasLeft = true
    const now = this.#clock.now()
    if (now < this.#heldOffUntil && this.#inVain < TRIES) return this.#heldOffUntil - now
    const grantMs = Math.min(Math.max(this.#leaseMs / 3, SLOW_MS), LONGEST_GRANT_MS)
    if (now - this.#grantedAt >= grantMs) {
      this.#grantedAt = now
      this.#inVain += 1
    }
    this.#untilUs = this.#inVain < TRIES ? atUs + Math.round(grantMs * 1_000) : undefined
    return 0
  }
}
