import type { Requests } from '../requests.ts'
import { readKeys as script } from '../scripts.generated.ts'

export interface MetKeys {
  /** Of the queue, without its prefix. What is made or goes during a walk may be missed. */
  readonly names: readonly string[]
  /** Where the next step goes on; `0` at the end. */
  readonly cursor: string
  /** For how long nobody has claimed anything of the queue. */
  readonly quietMs: number
}

export async function readKeys(
  requests: Requests,
  from: { cursor: string; count: number; nowUs?: string },
): Promise<MetKeys> {
  const { nowUs = '', cursor: at, count } = from
  const reply = await requests.run(script, () => ({ nowGiven: nowUs, cursor: at, count }))
  const [, quietUs, cursor, names] = reply as ['keys', string, string, string[]]
  return { names, cursor, quietMs: Number(quietUs) / 1_000 }
}
