const DAY_MS = 86_400_000

/** The most that may be said of one job, by itself, by its processor or by its queue, and over HTTP or in the command line. */
export const jobBounds = { cost: 1_000_000_000, maxRetries: 1_000, timeoutMs: DAY_MS, delayMs: 366 * DAY_MS } as const
