import type { WindowRule } from '../../../src/store/settings.ts'
import type { Meter, MeterContext } from './meter.ts'

/** A window of the calendar in the reference model. */

const SECOND = 1_000_000
const HOUR = 3_600 * SECOND

export class OpenWindow implements Meter {
  readonly jitter: number
  readonly #rule: WindowRule
  readonly #context: MeterContext
  readonly #start: number
  readonly stop: number
  closedUntil = 0
  used = 0
  /** What was used before the store had lost the queue is a guess. */
  readonly isEstimated: boolean
  /** Tenants that got one more than their strict share. */
  extra = 0
  #last = 0

  /** @param stored - `last grant:used:restarts[:extra]` */
  constructor(rule: WindowRule, stored: string | undefined, context: MeterContext) {
    const { restarts, jitter, now } = context
    this.#rule = rule
    this.#context = context
    this.jitter = jitter
    const { start, stop } = boundsAt(rule, now)
    this.#start = start
    this.stop = stop
    const [last = 0, used = 0, seen = 0, extra = 0] = stored?.split(':').map(Number) ?? []
    if (stored !== undefined && last >= start) {
      this.#last = last
      this.used = used
      this.extra = extra
    }
    const isShort = rule.window <= 60 * SECOND
    const { lostAt = -1 } = restarts
    this.isEstimated = !isShort && lostAt >= start
    if (restarts.count === 0) return
    if (isShort) {
      this.closedUntil = restarts.lastAt + rule.window + jitter
      return
    }
    const isGone = this.isEstimated && seen === 0
    if (isGone) this.used += Math.ceil((rule.count * (lostAt - start)) / (stop - start))
    if (restarts.lastAt >= start && seen + (isGone ? 1 : 0) < restarts.count)
      this.used += Math.ceil((2 * SECOND * rule.count) / rule.window)
  }

  available(): number {
    const { now } = this.#context
    if (this.closedUntil > now || now >= this.stop - this.jitter) return 0
    return Math.max(0, this.#rule.count - this.used)
  }

  instant(permits: number): number {
    const needed = Math.min(permits, this.#rule.count)
    const hasRoom = this.#context.now < this.stop - this.jitter && this.#rule.count - this.used >= needed
    return Math.max(this.closedUntil, hasRoom ? 0 : this.stop)
  }

  charge(permits: number): undefined {
    this.used += permits
    this.#last = this.#context.now
  }

  chargeAgain(permits: number): void {
    this.charge(permits)
  }

  furtherInstant(permits: number): number {
    return this.instant(permits)
  }

  refund(permits: number, fence: number): void {
    if (fence < this.#start || this.used === 0) return
    this.used = Math.max(0, this.used - permits)
    this.#last = Math.max(this.#last, this.#start)
  }

  batch(): number {
    return 1
  }

  usage(): { used: number; unusedAt: number } {
    return { used: this.used, unusedAt: this.used > 0 ? this.stop : 0 }
  }

  text(): string {
    const extra = this.extra > 0 ? `:${this.extra}` : ''
    return `${this.#last}:${this.used}:${this.#context.restarts.count}${extra}`
  }
}

/** Every window around now has its begin worked out; the last that has come is the one of now. */
function boundsAt({ window, offset, zones }: WindowRule, now: number): { start: number; stop: number } {
  if (!zones || window <= HOUR) {
    const wall = now + (zones ? aheadAt(zones, now) : 0)
    const into = (((wall - offset) % window) + window) % window
    return { start: now - into, stop: now - into + window }
  }
  const starts = startsAround(zones, window, offset, now)
  const start = Math.max(...starts.filter((at) => at <= now))
  return { start, stop: Math.min(...starts.filter((at) => at > now)) }
}

/** The instants at which the clock on the wall first shows the begin of a window, or jumps over it. */
function startsAround(zones: readonly number[], window: number, offset: number, now: number): number[] {
  const changes = zones.flatMap((at, place) => (place % 2 === 0 && place > 0 ? [at * SECOND] : []))
  const nearest = Math.floor((now + aheadAt(zones, now) - offset) / window)
  return [-2, -1, 0, 1, 2].map((step) => {
    const wall = (nearest + step) * window + offset
    // One stretch after the other in which the zone does not change.
    for (const [place, from] of [Number.NEGATIVE_INFINITY, ...changes].entries()) {
      const at = wall - (zones[2 * place + 1] as number) * SECOND
      if (at < (changes[place] ?? Number.POSITIVE_INFINITY)) return Math.max(at, from)
    }
    throw new Error('the last stretch has no end')
  })
}

function aheadAt(zones: readonly number[], at: number): number {
  let found = 0
  for (let i = 0; i < zones.length; i += 2) {
    if ((zones[i] as number) * SECOND <= at) found = (zones[i + 1] as number) * SECOND
  }
  return found
}
