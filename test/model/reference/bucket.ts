import type { LimitRule } from '../../../src/store/settings.ts'

/** A bucket in the reference model: what it has granted, as the one number of the generic cell rate algorithm. */

export type BucketRule = LimitRule & { kind: 'bucket' }

/** Later than any instant. */
export const NEVER = 9e15

const SECOND = 1_000_000
const SHORT_WINDOW = 60 * SECOND
const RESTART_LOSS = 2 * SECOND
const JUDGED_OVER = 10 * SECOND
const CALM_FOR = 60 * SECOND

/** What lasts of a bucket between two scripts. */
export interface BucketState {
  tat: number
  /** Who was granted last. */
  fence: number
  /** Restarts it has been through. */
  restarts: number
}

export interface Restarts {
  readonly count: number
  readonly lastAt: number
}

/** What a limit has learnt of the way to its upstream. One for all tenants under a limit of one name. */
export interface JitterState {
  jitter: number
  since: number
  granted: number
  stale: number
  calmSince: number
}

export function openJitter(rule: BucketRule, stored: JitterState | undefined, now: number): JitterState {
  if (!stored) return { jitter: rule.jitter, since: now, granted: 0, stale: 0, calmSince: now }
  return { ...stored, jitter: Math.max(rule.jitter, stored.jitter) }
}

/** More than 2 % stale over ten seconds double the jitter; a minute below 0.5 % halves it. */
export function judgeJitter(state: JitterState, rule: BucketRule, now: number): void {
  if (now - state.since < JUDGED_OVER) return
  const share = state.granted > 0 ? state.stale / state.granted : 0
  if (share > 0.02) {
    state.jitter = Math.min(state.jitter * 2, SECOND, Math.max(rule.window, rule.jitter))
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
export class OpenBucket {
  readonly rule: BucketRule
  readonly jitter: number
  readonly interval: number
  readonly now: number
  readonly closedUntil: number
  tat: number
  fence: number

  constructor(rule: BucketRule, stored: BucketState | undefined, jitter: number, restarts: Restarts, now: number) {
    this.rule = rule
    this.jitter = jitter
    this.interval = Math.ceil((rule.window + jitter) / (rule.count - rule.burst + 1))
    this.now = now
    const isOfSlowerRule = stored && stored.tat > now + 2 * rule.burst * this.interval
    this.tat = isOfSlowerRule ? now + (rule.burst - 1) * this.interval : (stored?.tat ?? 0)
    this.fence = stored?.fence ?? 0
    const isShort = rule.window <= SHORT_WINDOW
    this.closedUntil = restarts.count > 0 && isShort ? restarts.lastAt + rule.window + jitter : 0
    if (restarts.count > 0 && !isShort) {
      if (!stored) this.tat = Math.max(0, restarts.lastAt + (rule.burst - 1) * this.interval + RESTART_LOSS)
      else if (stored.restarts < restarts.count) this.tat = Math.max(this.tat, restarts.lastAt) + RESTART_LOSS
    }
  }

  /** Since a restart of the store. */
  get isClosed(): boolean {
    return this.closedUntil > this.now
  }

  available(): number {
    if (this.isClosed) return 0
    return Math.max(0, Math.floor(this.rule.burst - (Math.max(this.tat, this.now) - this.now) / this.interval))
  }

  /** When so many permits could be granted at once. */
  instant(permits: number): number {
    return Math.max(this.closedUntil, Math.ceil(this.tat - (this.rule.burst - permits) * this.interval))
  }

  charge(permits: number, fence: number): void {
    this.tat = Math.max(this.tat, this.now) + permits * this.interval
    this.fence = fence
  }

  /** Only the last grant can be undone. Answers whether it was. */
  refund(fence: number): boolean {
    if (this.fence !== fence) return false
    this.tat -= this.interval
    return true
  }
}
