/**
 * Time as the process sees it. What matters to more than one process goes by the Redis server's time instead. Tests put a
 * clock in its place that they move themselves.
 */
export interface Clock {
  /** Milliseconds since some fixed moment, with fractions. It never goes back. */
  now(): number
  /** Milliseconds since 1970. */
  date(): number
  /**
   * Calls `fn` once, `ms` from now or as soon after as the process can. Returns what cancels it; cancelling twice, or
   * after the call, does nothing.
   */
  setTimer(fn: () => void, ms: number): () => void
}

/** Time that somebody moves. Scripts in Redis go by it too. Made by `manualClock` of sluice/testing. */
export interface TestClock extends Clock {
  /** Whoever lives by this clock says so, and how to wait for it. Returns what takes it off again. */
  join(dweller: ClockDweller): () => void
}

/** What lives by a clock that is moved. */
export interface ClockDweller {
  /** Resolves when what it has begun waits for nothing but the clock. False: it was at rest already. */
  settle(): Promise<boolean>
}

// Node fires a longer timer at once. Nobody waits 24 days in one go: the caller looks again when it fires.
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => Date.now(),
  setTimer(fn, ms) {
    const timer = setTimeout(fn, Math.min(Math.max(ms, 0), LONGEST_TIMER_MS))
    return () => clearTimeout(timer)
  },
}

export function isTestClock(clock: unknown): clock is TestClock {
  return typeof clock === 'object' && clock !== null && typeof (clock as Partial<TestClock>).join === 'function'
}
