/**
 * Time as the process sees it. It never goes back and has no date: instants that matter to more than one process
 * are the Redis server's. Tests put a manual clock in its place.
 */
export interface Clock {
  /** Milliseconds since some fixed moment, with fractions. */
  now(): number
  /**
   * Calls `fn` once, `ms` from now or as soon after as the process can. Returns what cancels it; canceling twice, or
   * after the call, does nothing.
   */
  setTimer(fn: () => void, ms: number): () => void
}

// Node fires a longer timer at once. Nobody waits 24 days in one go: the caller looks again when it fires.
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer(fn, ms) {
    const timer = setTimeout(fn, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}
