import type { Requests } from '../requests.ts'
import { watchAction as script } from '../scripts.generated.ts'

/** @param watch.forMs - 0: no longer. False: there is no such action. */
export async function watchAction(
  requests: Requests,
  watch: { tenant: string; name: string; forMs: number },
  nowUs = '',
): Promise<boolean> {
  const [word] = await requests.run(script, () => ({
    nowGiven: nowUs,
    action: `${watch.tenant}:${watch.name}`,
    client: requests.client,
    watchFor: watch.forMs * 1000,
  }))
  return word === 'watched'
}
