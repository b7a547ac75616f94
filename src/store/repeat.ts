import { StoreUnavailableError } from '../errors.ts'

/**
 * A call is repeated no longer than this. Most have a request number, which scripts remember for a minute (FOR_MS in
 * lua/requests.lua): repeated later, it would be done twice.
 */
export const REPEATED_FOR_MS = 45_000

const REPEAT_AFTER_MS = 50
const LONGEST_STEPS = 20

/**
 * Calls until the store is available: again 50 ms later, 100 ms later, at most 1 s later, and for no longer than
 * `giveUpAfterMs`. Only for calls that may run twice. Any other error ends it at once.
 */
export async function repeatWhileUnavailable<T>(call: () => Promise<T>, giveUpAfterMs = REPEATED_FOR_MS): Promise<T> {
  const giveUpAt = performance.now() + giveUpAfterMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError) || performance.now() >= giveUpAt) throw error
      const waitMs = REPEAT_AFTER_MS * Math.min(attempt, LONGEST_STEPS)
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
}
