import type { Requests } from '../requests.ts'
import { takeAudit as script } from '../scripts.generated.ts'

export type TakeAuditReply =
  /** It is the caller's. `position`: where to go on; empty: a new round begins. */
  | { readonly word: 'taken'; readonly position: string; readonly quietMs: number }
  /** Another has it, or the next round is not due. */
  | { readonly word: 'wait'; readonly waitMs: number }

/** @param position - How far the caller is; `end`: the round is over; empty: it does not know. */
export async function takeAudit(
  requests: Requests,
  options: { leaseMs: number; everyMs: number; position: string; nowUs?: string },
): Promise<TakeAuditReply> {
  const { leaseMs, everyMs, position, nowUs = '' } = options
  const reply = await requests.run(script, () => ({
    nowGiven: nowUs,
    client: requests.client,
    lease: leaseMs * 1_000,
    every: everyMs * 1_000,
    position,
  }))
  const [word, us, at] = reply as ['taken' | 'wait', string, string]
  if (word === 'wait') return { word, waitMs: Number(us) / 1_000 }
  return { word, position: at, quietMs: Number(us) / 1_000 }
}
