import { setTimeout as sleep } from 'node:timers/promises'

const EVERY_MS = 10

interface UntilOptions {
  /** What is waited for, in the message. @default the question itself */
  what?: string
  /** Long enough for a busy machine: what takes longer hangs. @default 20_000 */
  timeoutMs?: number
}

/**
 * Asks until the answer is yes. For what announces itself nowhere. An error counts as no: a server that is not there yet
 * cannot be asked.
 */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  { what = String(isSo), timeoutMs = 20_000 }: UntilOptions = {},
): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < giveUpAt) {
    try {
      if (await isSo()) return
    } catch (error) {
      last = error
    }
    await sleep(EVERY_MS)
  }
  throw new Error(`not so within ${timeoutMs} ms: ${what}`, { cause: last })
}
