/**
 * How long a process that closes waits for a store that does not answer: to tell it what is left, or to hear of what is under
 * way. What it cannot tell the store finds out by itself, after a lease.
 */
export const LAST_WORDS_MS = 5_000

/**
 * Resolves when the promise has settled, whichever way: true; or when the time is over: false, and whatever is behind the
 * promise goes on. By the time of the machine: it is Redis that is waited for, and no test moves that.
 */
export function settledWithin(promise: Promise<unknown> | undefined, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms)
    const end = () => {
      clearTimeout(timer)
      resolve(true)
    }
    Promise.resolve(promise).then(end, end)
  })
}
