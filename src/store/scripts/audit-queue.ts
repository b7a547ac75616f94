import type { Requests } from '../requests.ts'
import { auditQueue as script } from '../scripts.generated.ts'
import { type Difference, decodeDifference, type EncodedDifference } from './audit-tenant.ts'

export type AuditQueueReply =
  | { readonly word: 'audited'; readonly differences: Difference[] }
  /** There is more of something than can be looked at in one script. */
  | { readonly word: 'skipped'; readonly what: string }

/** @param met - Keys of tenants and claims: `tenant:<tenant>`, `claim:<fence>`. */
export async function auditQueue(
  requests: Requests,
  options: { met: readonly string[]; isRepairing: boolean; nowUs?: string },
): Promise<AuditQueueReply> {
  const reply = await requests.run('audit-queue', script, () => ({
    nowGiven: options.nowUs ?? '',
    repairs: options.isRepairing ? 1 : 0,
    met: options.met,
  }))
  if (reply[0] === 'skipped') return { word: 'skipped', what: reply[1] as string }
  return { word: 'audited', differences: (reply[1] as EncodedDifference[]).map(decodeDifference) }
}
