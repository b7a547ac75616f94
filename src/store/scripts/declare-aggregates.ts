import type { Requests } from '../requests.ts'
import { declareAggregates as script } from '../scripts.generated.ts'

/** @param forMs - 0: no longer. Answers whether a duty is due. */
export async function declareAggregates(
  requests: Requests,
  types: readonly string[],
  forMs: number,
  nowUs = '',
): Promise<boolean> {
  const [, due] = await requests.run('declare-aggregates', script, () => ({
    nowGiven: nowUs,
    client: requests.client,
    holdFor: forMs * 1000,
    types,
  }))
  return due === 1
}
