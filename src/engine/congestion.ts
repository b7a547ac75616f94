/** What a backlog means in time: how far a tenant is behind at the speed it is being served with. */
export type CongestionLevel = 'NONE' | 'LOW' | 'MODERATE' | 'HIGH' | 'CRITICAL'

const BASE_BACKOFF_MS = 1_000
const MAX_BACKOFF_MS = 120_000

/** @param perSecond - Jobs that start in a second; less than one counts as one. */
export function congestionLevel(waiting: number, perSecond: number): CongestionLevel {
  const seconds = Math.floor(waiting / Math.max(1, perSecond))
  const times = Math.min(MAX_BACKOFF_MS, BASE_BACKOFF_MS + seconds * 1_000) / BASE_BACKOFF_MS
  if (times <= 1) return 'NONE'
  if (times < 3) return 'LOW'
  if (times < 10) return 'MODERATE'
  return times < 30 ? 'HIGH' : 'CRITICAL'
}
