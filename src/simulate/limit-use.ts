import type { LimitRule, LimitScope, WindowRule } from '../store/settings.ts'
import { bucketInterval } from './scheduler/meters.ts'
import { windowBounds } from './scheduler/window-bounds.ts'
import { type Column, column } from './time-series.ts'

/**
 * How much of a limit was used, as a share of what it could have granted: of a bucket of its effective rate, of a window of the
 * budget of the window of that moment, of a concurrency limit of its slots. A limit of tenants is all of theirs together.
 */
export class LimitUse {
  readonly scope: LimitScope
  readonly rule: LimitRule
  /** Whose it is; undefined: the queue's, or a level's. */
  readonly group: string | undefined
  readonly #members: number
  readonly #startUs: number
  #started = 0
  #startedBefore = 0
  #running = 0
  /** Of what runs, over time; up to `#since`. */
  #area = 0
  #areaBefore = 0
  #since: number
  #sampledAt: number
  #lastStartAt = 0
  #windowStop = 0
  #startedBeforeWindow = 0
  /** The most that started in one window. */
  #fullest = 0
  #column: Column | undefined

  constructor(parts: { scope: LimitScope; rule: LimitRule; group?: string; members?: number; startUs: number }) {
    this.scope = parts.scope
    this.rule = parts.rule
    this.group = parts.group
    this.#members = parts.members ?? 1
    this.#startUs = parts.startUs
    this.#since = parts.startUs
    this.#sampledAt = parts.startUs
  }

  starts(now: number): void {
    this.#rollWindow(now)
    this.#pass(now)
    this.#started += 1
    this.#running += 1
    this.#lastStartAt = now
    this.#fullest = Math.max(this.#fullest, this.#started - this.#startedBeforeWindow)
  }

  ends(now: number): void {
    this.#pass(now)
    this.#running -= 1
  }

  /** The use over time, from 0 to 1. */
  get values(): readonly number[] {
    return this.#column?.values ?? []
  }

  columnAt(now: () => number): Column {
    const kind = this.rule.kind === 'window' ? 'level' : 'mean'
    this.#column = column(kind, () => this.#sample(now()))
    return this.#column
  }

  /** Over all the time that has passed; of a window over all windows there were. */
  average(now: number): number {
    this.#pass(now)
    const { rule } = this
    if (this.#started === 0) return 0
    if (rule.kind === 'window') return this.#started / (rule.count * this.#members * this.#windowsUntil(rule, now))
    const passed = now - this.#startUs
    return passed === 0 ? 0 : this.#share({ started: this.#started, area: this.#area, passed })
  }

  /** In the busiest stretch; of a window in the fullest one. */
  peak(now: number): number {
    const { rule } = this
    const values = rule.kind === 'window' ? [this.#fullest / (rule.count * this.#members)] : this.values
    return Math.max(this.average(now), ...values)
  }

  /** What it grants in a second at most, on average; undefined for slots. */
  get perSecond(): number | undefined {
    const { rule } = this
    if (rule.kind === 'bucket') return 1e6 / bucketInterval(rule)
    return rule.kind === 'window' ? (rule.count * 1e6) / rule.window : undefined
  }

  #sample(now: number): number {
    this.#pass(now)
    // At the very end of a window it tells of that one: of the next nothing can have been used yet.
    if (now !== this.#windowStop) this.#rollWindow(now)
    const { rule } = this
    const started = this.#started - this.#startedBefore
    const area = this.#area - this.#areaBefore
    const passed = now - this.#sampledAt
    this.#startedBefore = this.#started
    this.#areaBefore = this.#area
    this.#sampledAt = now
    if (rule.kind === 'window') return (this.#started - this.#startedBeforeWindow) / (rule.count * this.#members)
    return this.#share({ started, area, passed })
  }

  #share({ started, area, passed }: { started: number; area: number; passed: number }): number {
    const { rule } = this
    if (rule.kind === 'concurrency') return area / (passed * rule.max * this.#members)
    return started / (((this.perSecond ?? 0) * passed * this.#members) / 1e6)
  }

  #pass(now: number): void {
    this.#area += this.#running * (now - this.#since)
    this.#since = now
  }

  #rollWindow(now: number): void {
    if (this.rule.kind !== 'window' || now < this.#windowStop) return
    this.#windowStop = windowBounds(this.rule, now).stop
    this.#startedBeforeWindow = this.#started
  }

  /**
   * How many budgets there were. That of the last window is a whole one if something was taken of it; if not, as much of one as
   * has passed of it: work that ends a moment after midnight has not had two days.
   */
  #windowsUntil(rule: WindowRule, now: number): number {
    const first = windowBounds(rule, this.#startUs)
    const last = windowBounds(rule, now)
    const isUsed = this.#lastStartAt >= last.start
    const ofLast = isUsed ? 1 : (now - last.start) / (last.stop - last.start)
    // Days on which clocks change are an hour longer or shorter.
    return Math.round((last.start - first.start) / rule.window) + ofLast
  }
}
