const EVERY_MS = 10

/** Asks until it is so: for servers that announce nothing. Fails after `timeoutMs` with what was waited for. */
export async function until(what: string, isSo: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const giveUpAt = performance.now() + timeoutMs
  let last: unknown
  while (performance.now() < giveUpAt) {
    try {
      if (await isSo()) return
    } catch (error) {
      last = error
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
  throw new Error(`not so within ${timeoutMs} ms: ${what}`, { cause: last })
}
