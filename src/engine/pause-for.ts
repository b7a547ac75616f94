import type { Clock } from '../clock.ts'

/** Resolves after a time, or as soon as the signal is aborted: at once if it is already. */
export function pauseFor(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancelTimer()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancelTimer = clock.setTimer(end, ms)
    signal?.addEventListener('abort', end)
  })
}
