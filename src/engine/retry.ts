const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 60_000
const LONGEST_WAIT_MS = 86_400_000

/** 1 s × 2^attempt, a quarter more or less by chance, at most a minute. `failures` counts the runs that failed before. */
export function retryDelayMs(failures: number, random: () => number = Math.random): number {
  const delay = FIRST_RETRY_MS * 2 ** Math.min(failures, 10) * (0.75 + random() / 2)
  return Math.min(LONGEST_RETRY_MS, delay)
}

/** As long as the upstream asked for, within a day; undefined when it did not say, or said nonsense. */
export function throttleDelayMs(retryAfterMs: number | undefined): number | undefined {
  if (retryAfterMs === undefined || !Number.isFinite(retryAfterMs) || retryAfterMs < 0) return undefined
  return Math.min(retryAfterMs, LONGEST_WAIT_MS)
}
