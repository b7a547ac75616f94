import { effectivePerSecond } from '../limits/definition.ts'
import type { LimitRow } from '../store/scripts/read-limits.ts'
import type { LimitRule, LimitScope } from '../store/settings.ts'

/** How a limit stands. */
export interface LimitStatus {
  readonly name: string
  readonly scope: LimitScope
  readonly kind: LimitRule['kind']
  /** Calls a window, or jobs in flight; of a quota what its upstream allows, 0 while it has not told. */
  readonly limit: number
  /** Of a bucket: permits of its burst that are not back yet. Of a quota: what is in flight. */
  readonly used: number
  /**
   * Redis had lost what a window had counted, so that as much as had passed of it was taken as used: the calls since then
   * are counted. To use more of it, raise the limit until it ends.
   */
  readonly isEstimated: boolean
  /** What could be granted now. */
  readonly remaining: number
  /** When nothing of it is used any more, in ms since 1970 by this process's clock; undefined if that is now. */
  readonly resetAt: number | undefined
  /**
   * Until when it grants nothing; undefined if it grants, or nobody knows: a full concurrency limit, a quota that waits for
   * its first answer.
   */
  readonly closedUntil: number | undefined
  /** Until when an upstream that pushed back has closed it. */
  readonly pushedBackUntil: number | undefined
  /** What it grants when it is always asked, less what an upstream that pushed back has cut; undefined without a rate. */
  readonly effectivePerSecond: number | undefined
  /** What it allows for on the way to the upstream now; it grows when grants arrive late. Undefined without a rate. */
  readonly jitterMs: number | undefined
  readonly activeTenants: number
  /** What each active tenant gets if all have equal weight and use it. */
  readonly sharePerTenant: number
}

export function statusOf(row: LimitRow, activeTenants: number, nowMs: number): LimitStatus {
  const { scope, name, kind, limit, used, available: remaining } = row
  const rate = ratePerSecond(row)
  const instant = (inUs: number) => (inUs > 0 ? nowMs + inUs / 1000 : undefined)
  return {
    name,
    scope,
    kind,
    limit,
    used,
    isEstimated: row.isEstimated,
    remaining,
    resetAt: instant(row.fullInUs),
    closedUntil: instant(row.opensInUs),
    pushedBackUntil: instant(row.pushedForUs),
    effectivePerSecond: rate,
    jitterMs: rate === undefined ? undefined : row.jitterUs / 1000,
    activeTenants,
    sharePerTenant: (scope === 'tenant' ? 1 : 1 / Math.max(1, activeTenants)) * (rate ?? limit),
  }
}

/** What it grants when it is always asked; undefined without a rate. */
export function ratePerSecond({ name, kind, limit, windowUs, burst, jitterUs, share }: LimitRow): number | undefined {
  if (kind === 'window') return (limit * 1_000_000) / windowUs
  if (kind !== 'bucket') return undefined
  const rule = { name, kind, count: limit, window: windowUs, burst, jitter: jitterUs }
  return (effectivePerSecond(rule, jitterUs) * share) / 1_000
}
