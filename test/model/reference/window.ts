import type { WindowRule } from '../../../src/store/settings.ts'
import type { Meter, MeterContext } from './meter.ts'

/** A window of the calendar in the reference model. */

const SECOND = 1_000_000
const DAY = 86_400 * SECOND

export class OpenWindow implements Meter {
  readonly jitter: number
  readonly #rule: WindowRule
  readonly #context: MeterContext
  readonly #start: number
  readonly stop: number
  closedUntil = 0
  used = 0
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
    if (restarts.count === 0) return
    if (rule.window <= 60 * SECOND) this.closedUntil = restarts.lastAt + rule.window + jitter
    else if (restarts.lastAt >= start) {
      if (stored === undefined) this.used = Math.ceil((rule.count * (restarts.lastAt - start)) / (stop - start))
      else if (seen < restarts.count) this.used += Math.ceil((2 * SECOND * rule.count) / rule.window)
    }
  }

  available(): number {
    const { now } = this.#context
    if (this.closedUntil > now || now >= this.stop - this.jitter) return 0
    return Math.max(0, this.#rule.count - this.used)
  }

  instant(permits: number): number {
    const hasRoom = this.#context.now < this.stop - this.jitter && this.#rule.count - this.used >= permits
    return Math.max(this.closedUntil, hasRoom ? 0 : this.stop)
  }

  charge(permits: number): undefined {
    this.used += permits
    this.#last = this.#context.now
  }

  chargeAgain(permits: number): void {
    this.charge(permits)
  }

  refund(permits: number, fence: number): void {
    if (fence >= this.#start) this.used = Math.max(0, this.used - permits)
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

function boundsAt({ window, offset, zones }: WindowRule, now: number): { start: number; stop: number } {
  const ahead = (at: number): number => {
    let found = 0
    for (let i = 0; zones && i < zones.length; i += 2) {
      if ((zones[i] as number) * SECOND <= at) found = (zones[i + 1] as number) * SECOND
    }
    return found
  }
  const wall = now + ahead(now)
  const into = (((wall - offset) % window) + window) % window
  if (!zones || window < DAY) return { start: now - into, stop: now - into + window }
  const instantOf = (shown: number): number => shown - ahead(shown - ahead(shown))
  return { start: instantOf(wall - into), stop: instantOf(wall - into + window) }
}
