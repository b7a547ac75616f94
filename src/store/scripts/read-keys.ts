import type { Requests } from '../requests.ts'
import { readKeys as script } from '../scripts.generated.ts'

/** Every key of the queue, without its prefix, in batches. What is made or goes meanwhile may be missed. */
export async function* walkKeys(requests: Requests, count: number): AsyncGenerator<readonly string[]> {
  let cursor = '0'
  do {
    const at = cursor
    const reply = await requests.run('read-keys', script, () => ({ cursor: at, count }))
    const [, next, names] = reply as ['keys', string, string[]]
    cursor = next
    if (names.length > 0) yield names
  } while (cursor !== '0')
}
