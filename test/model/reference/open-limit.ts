import type { LimitRule, LimitScope } from '../../../src/store/settings.ts'
import type { Meter } from './meter.ts'
import type { PushbackState } from './pushback.ts'
import { OpenSlots } from './slots.ts'

/** A limit as one script sees it. */
export interface OpenLimit {
  readonly scope: LimitScope
  /** `<scope>/<name>`, under which its grants and denials are counted. */
  readonly countedAs: string
  readonly rule: LimitRule
  /** A tenant's strict share of the queue's limit of that name. */
  readonly isShare: boolean
  readonly meter: Meter
  pushed: PushbackState | undefined
  /** Keeps what the meter counts. */
  save(): void
  savePushback(): void
}

export function isHeld({ meter }: OpenLimit): boolean {
  return meter instanceof OpenSlots
}

/** What all of them can grant; when that is nothing, the latest instant named and who names it. */
export function least(limits: readonly OpenLimit[]): { permits: number; until: number; last: OpenLimit | undefined } {
  let permits = Number.POSITIVE_INFINITY
  let until = 0
  let last: OpenLimit | undefined
  for (const limit of limits) {
    const own = limit.meter.available()
    permits = Math.min(permits, own)
    if (own > 0) continue
    const instant = limit.meter.instant(1)
    if (instant <= until) continue
    until = instant
    last = limit
  }
  return { permits, until, last }
}

/** When all can grant so much at once, and who can last. */
export function latestInstant(
  limits: readonly OpenLimit[],
  permits: number,
): { until: number; last: OpenLimit | undefined } {
  let until = 0
  let last: OpenLimit | undefined
  for (const limit of limits) {
    const instant = limit.meter.instant(permits)
    if (instant <= until) continue
    until = instant
    last = limit
  }
  return { until, last }
}

const REASONS = { bucket: 'rate', window: 'window', quota: 'quota', concurrency: 'concurrency' } as const

/** Why a limit has nothing to grant. */
export function reasonOf({ meter, pushed, rule, isShare }: OpenLimit, now: number): string {
  if (meter.closedUntil <= now) return isShare ? 'share' : REASONS[rule.kind]
  return pushed && pushed.closedUntil > now ? 'upstream' : 'restart'
}

/** When half a burst can be granted at once: asking for every single permit would cost a request each. */
export function batchInstant(limits: readonly OpenLimit[], wanted: number): number {
  return Math.max(0, ...limits.map(({ meter }) => meter.instant(Math.max(1, Math.min(wanted, meter.batch())))))
}
