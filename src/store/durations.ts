/**
 * Durations are counted in buckets, each a tenth wider than the one before, so that percentiles of any number of jobs cost
 * a few dozen counters and are right within five per cent.
 */
const GROWTH = 1.1
const PER_MS = 100

export function durationBucket(ms: number): number {
  return Math.max(0, Math.round(Math.log(Math.max(0, ms) * PER_MS + 1) / Math.log(GROWTH)))
}

function durationOf(bucket: number): number {
  return (GROWTH ** bucket - 1) / PER_MS
}

/** @param counts - Bucket → how many. Undefined when there are none. */
export function percentiles(
  counts: ReadonlyMap<number, number>,
): { p50: number; p95: number; p99: number } | undefined {
  const buckets = [...counts].sort(([a], [b]) => a - b)
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  if (total === 0) return undefined
  const at = (share: number) => {
    let left = Math.ceil(total * share)
    for (const [bucket, count] of buckets) {
      left -= count
      if (left <= 0) return Math.round(durationOf(bucket) * 100) / 100
    }
    return 0
  }
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
