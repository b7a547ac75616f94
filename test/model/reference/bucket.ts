import type { BucketRule, WindowRule } from '../../../src/store/settings.ts'
import type { Meter, MeterContext } from './meter.ts'

/** A bucket in the reference model: what it has granted, as the one number of the generic cell rate algorithm. */

/** Rules that depend on the way to the upstream. */
export type PacedRule = BucketRule | WindowRule

/** Later than any instant. */
export const NEVER = 9e15

const SECOND = 1_000_000
const SHORT_WINDOW = 60 * SECOND
const RESTART_LOSS = 2 * SECOND
const JUDGED_OVER = 10 * SECOND
const CALM_FOR = 60 * SECOND
/** Of the jitter: how late a permit can be granted. */
const REACH = 0.05

export interface Restarts {
  readonly count: number
  readonly lastAt: number
  /** When a process came back that had known the queue in a store that has lost it: the first of them. */
  readonly lostAt?: number | undefined
}

/** What a limit has learnt of the way to its upstream. One for all tenants under a limit of one name. */
export interface JitterState {
  /** By which all go until the script under way has ended. */
  readonly began: number
  /** Which of its name it was opened under: the template's, where that has one. */
  readonly rule: PacedRule
  jitter: number
  since: number
  granted: number
  stale: number
  calmSince: number
}

export function openJitter(rule: PacedRule, stored: JitterState | undefined, now: number): JitterState {
  if (!stored)
    return { rule, began: rule.jitter, jitter: rule.jitter, since: now, granted: 0, stale: 0, calmSince: now }
  const began = jitterWithin(rule, stored.jitter)
  return { ...stored, rule, began, jitter: began }
}

/** What was learnt under one rule, as another of the same name may go by it. */
export function jitterWithin(rule: PacedRule, jitter: number): number {
  return Math.min(Math.max(rule.jitter, jitter), widest(rule))
}

function widest(rule: PacedRule): number {
  return Math.min(SECOND, Math.max(rule.kind === 'window' ? Math.floor(rule.window / 2) : rule.window, rule.jitter))
}

/** More than 2 % stale over ten seconds double the jitter; a minute below 0.5 % halves it. */
export function judgeJitter(state: JitterState, now: number): void {
  const { rule } = state
  if (now - state.since < JUDGED_OVER) return
  const share = state.granted > 0 ? state.stale / state.granted : 0
  if (share > 0.02) {
    state.jitter = Math.min(state.jitter * 2, widest(rule))
    state.calmSince = now
  } else if (share > 0.005) {
    state.calmSince = now
  } else if (now - state.calmSince >= CALM_FOR && state.jitter > rule.jitter) {
    state.jitter = Math.max(rule.jitter, Math.floor(state.jitter / 2))
    state.calmSince = now
  }
  state.since = now
  state.granted = 0
  state.stale = 0
}

/** A bucket as one script sees it: its jitter stays what it was when the script began. */
export class OpenBucket implements Meter {
  readonly rule: BucketRule
  readonly jitter: number
  interval: number
  /** What it was when the script began. */
  readonly intervalBefore: number
  readonly #context: MeterContext
  closedUntil: number
  tat: number
  fence: number
  readonly #reach: number
  /** How many permits this script has granted, and what the bucket stood at before. */
  #taken = 0
  #tatBefore = 0

  /** @param stored - `tat:fence:restarts` */
  constructor(rule: BucketRule, stored: string | undefined, context: MeterContext) {
    const { jitter, restarts, now, share } = context
    this.rule = rule
    this.jitter = jitter
    this.#context = context
    this.#reach = Math.floor(jitter * REACH)
    this.interval = share < 1 ? Math.ceil(this.#fullInterval / share) : this.#fullInterval
    this.intervalBefore = this.interval
    const [tat = 0, fence = 0, seen = 0] = stored?.split(':').map(Number) ?? []
    const { lostAt } = restarts
    const hasLost = lostAt !== undefined && seen === 0
    const isOfSlowerRule = tat > now + 2 * (context.hasCosts ? rule.count : rule.burst) * this.interval
    this.tat = isOfSlowerRule ? now + (rule.burst - 1) * this.interval : tat
    this.fence = fence
    const isShort = rule.window <= SHORT_WINDOW
    this.closedUntil = restarts.count > 0 && isShort ? restarts.lastAt + rule.window + jitter : 0
    if (isShort) return
    if (hasLost) this.tat = Math.max(this.tat, lostAt + (rule.burst - 1) * this.interval + RESTART_LOSS)
    if (seen + (hasLost ? 1 : 0) < restarts.count) this.tat = Math.max(this.tat, restarts.lastAt) + RESTART_LOSS
  }

  get #fullInterval(): number {
    const { count, window, burst } = this.rule
    return Math.ceil((window + this.jitter) / (count - burst + 1))
  }

  /** Answers whether what it counts has changed: what is used of the burst stays used. */
  slow(share: number): boolean {
    const before = this.interval
    const { now } = this.#context
    this.interval = Math.ceil(this.#fullInterval / share)
    if (this.interval === before || this.tat <= now) return false
    this.tat = now + Math.ceil(((this.tat - now) * this.interval) / before)
    return true
  }

  available(): number {
    const { now } = this.#context
    if (this.closedUntil > now) return 0
    const tat = this.#taken > 0 ? this.#tatBefore : this.tat
    const ahead = Math.max(tat, now - this.#reach) - now
    return Math.max(0, Math.floor(this.rule.burst - ahead / this.interval) - this.#taken)
  }

  instant(permits: number): number {
    const needed = Math.min(permits, this.rule.count)
    const saved = this.tat - (this.rule.burst - needed) * this.interval
    const over = (this.#taken + needed - this.rule.burst) * this.interval
    const isWithinReach = this.#taken > 0 && over <= this.#reach
    const instant = isWithinReach ? Math.min(saved, this.#tatBefore + over) : saved
    return Math.max(this.closedUntil, Math.ceil(instant))
  }

  /** What came free within reach is granted as if it had been asked for then: a burst and more, all of one script at once. */
  charge(permits: number, fence: number): undefined {
    if (this.#taken === 0) this.#tatBefore = this.tat
    this.#taken += permits
    this.tat = Math.max(this.#tatBefore, this.#context.now - this.#lateness()) + this.#taken * this.interval
    this.fence = fence
  }

  #lateness(): number {
    const over = (this.#taken - this.rule.burst) * this.interval
    if (over < 0) return 0
    const rested = this.#context.now - this.#tatBefore
    if (rested <= this.#reach) return rested
    return over <= this.#reach ? over : 0
  }

  late(): number {
    return this.#taken > 0 ? Math.max(0, this.#context.now - (this.tat - this.#taken * this.interval)) : 0
  }

  chargeAgain(permits: number, fence: number): void {
    this.charge(permits, fence)
  }

  furtherInstant(permits: number): number {
    return this.instant(permits)
  }

  /** Only the last grant can be undone. */
  refund(permits: number, fence: number): void {
    if (this.fence === fence) this.tat -= permits * this.interval
  }

  batch(): number {
    return Math.floor(this.rule.burst / 2)
  }

  usage(): { used: number; unusedAt: number } {
    const left = Math.max(0, this.tat - this.#context.now)
    const used = Math.min(this.rule.burst, Math.ceil(left / this.interval))
    return { used, unusedAt: Math.max(0, this.tat, this.closedUntil) }
  }

  text(): string {
    return `${this.tat}:${this.fence}:${this.#context.restarts.count}`
  }
}
