import type { Requests } from '../requests.ts'
import { freeTrash as script } from '../scripts.generated.ts'

/** Frees some of the records of a dropped list; answers how many are left. */
export async function freeTrash(requests: Requests, trash: string, most: number, nowUs = ''): Promise<number> {
  const [, left] = await requests.run(script, () => ({ nowGiven: nowUs, trash, most }))
  return left as number
}
