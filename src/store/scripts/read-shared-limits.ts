import type { GroupKeys } from '../keys.ts'
import type { Requests } from '../requests.ts'
import { readSharedLimits as script } from '../scripts.generated.ts'
import { decodeRow, type EncodedRow, type LimitRow } from './read-limits.ts'

export async function readSharedLimits(
  requests: Requests<GroupKeys>,
  names: readonly string[],
  nowUs = '',
): Promise<LimitRow[]> {
  const [, rows] = await requests.run(script, () => ({ nowGiven: nowUs, names }))
  return (rows as EncodedRow[]).map(decodeRow)
}
