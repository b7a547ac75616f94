/** What a backlog means in time: how far a tenant is behind at the speed it is being served with. */
export type CongestionLevel = 'NONE' | 'LOW' | 'MODERATE' | 'HIGH' | 'CRITICAL'

/** The lightest first. */
export const congestionLevels = ['NONE', 'LOW', 'MODERATE', 'HIGH', 'CRITICAL'] as const

/** By how many times the shortest backoff it is. */
export function levelOfBackoff(backoffMs: number, baseBackoffMs: number): CongestionLevel {
  const times = backoffMs / baseBackoffMs
  if (times <= 1) return 'NONE'
  if (times < 3) return 'LOW'
  if (times < 10) return 'MODERATE'
  return times < 30 ? 'HIGH' : 'CRITICAL'
}

/** Whole seconds until a backlog has started, in ms. */
export function etaMsOf(waiting: number, perSecond: number): number {
  return Math.ceil(waiting / (perSecond > 0 ? perSecond : 1)) * 1_000
}
