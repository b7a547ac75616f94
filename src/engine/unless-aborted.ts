/**
 * What the promise says, or the signal's reason if that comes first. Whoever is behind the promise may still go on.
 * @param graceMs - For so long after the signal the promise may still say what became of it.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined, graceMs = 0): Promise<T> {
  if (!signal) return promise
  return new Promise((resolve, reject) => {
    let grace: NodeJS.Timeout | undefined
    const giveUp = () => reject(signal.reason as Error)
    const onAbort = () => {
      if (graceMs === 0) giveUp()
      else grace = setTimeout(giveUp, graceMs)
    }
    if (signal.aborted) onAbort()
    else signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => {
      clearTimeout(grace)
      signal.removeEventListener('abort', onAbort)
    })
  })
}
