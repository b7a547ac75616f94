import type { LimitRule, LimitScope } from '../../../src/store/settings.ts'
import { type BucketRule, NEVER, type OpenBucket } from './bucket.ts'

/** A limit as one script sees it. */
export type OpenLimit = {
  /** `<scope>/<name>`, under which its grants and denials are counted. */
  readonly countedAs: string
} & (
  | { readonly bucket: OpenBucket; readonly scope: LimitScope; readonly rule: BucketRule; save(): void }
  | { readonly bucket: undefined; readonly rule: LimitRule & { kind: 'concurrency' }; running(): number }
)

export function permitsOf(limit: OpenLimit): number {
  return limit.bucket ? limit.bucket.available() : Math.max(0, limit.rule.max - limit.running())
}

/** What all of them can grant; when that is nothing, the latest instant named and who names it. */
export function least(limits: readonly OpenLimit[]): { permits: number; until: number; last: OpenLimit | undefined } {
  let permits = Number.POSITIVE_INFINITY
  let until = 0
  let last: OpenLimit | undefined
  for (const limit of limits) {
    const own = permitsOf(limit)
    permits = Math.min(permits, own)
    if (own > 0) continue
    const instant = limit.bucket ? limit.bucket.instant(1) : NEVER
    if (instant <= until) continue
    until = instant
    last = limit
  }
  return { permits, until, last }
}

/** Why a limit has nothing to grant. */
export function reasonOf({ bucket }: OpenLimit): 'concurrency' | 'restart' | 'rate' {
  if (!bucket) return 'concurrency'
  return bucket.isClosed ? 'restart' : 'rate'
}

/** When half a burst can be granted at once: asking for every single permit would cost a request each. */
export function batchInstant(limits: readonly OpenLimit[], wanted: number): number {
  let latest = 0
  for (const limit of limits) {
    if (!limit.bucket) {
      if (permitsOf(limit) === 0) return NEVER
      continue
    }
    const permits = Math.max(1, Math.min(wanted, Math.floor(limit.bucket.rule.burst / 2)))
    latest = Math.max(latest, limit.bucket.instant(permits))
  }
  return latest
}
