/** What was under way ends by itself within this, where the store answers. */
const GRACE_MS = 500

/** The work; or the reason of the signal, soon after it is aborted: a store that does not answer is not waited for. */
export function orAborted<Result>(work: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined
    const onAbort = () => {
      grace = setTimeout(() => reject(signal.reason), GRACE_MS)
    }
    const stop = () => {
      clearTimeout(grace)
      signal.removeEventListener('abort', onAbort)
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort)
    work.then(resolve, reject).finally(stop)
  })
}
