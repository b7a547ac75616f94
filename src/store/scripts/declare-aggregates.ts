import type { Requests } from '../requests.ts'
import { declareAggregates as script } from '../scripts.generated.ts'

/** @param forMs - 0: no longer. Answers whether a duty is due. @param options - `giveUpAfterMs`: of last words. */
export async function declareAggregates(
  requests: Requests,
  types: readonly string[],
  forMs: number,
  options: { nowUs?: string; giveUpAfterMs?: number } = {},
): Promise<boolean> {
  const { nowUs = '', ...patience } = options
  const args = { nowGiven: nowUs, client: requests.client, holdFor: forMs * 1000, types }
  const [, due] = await requests.run(script, () => args, patience)
  return due === 1
}
