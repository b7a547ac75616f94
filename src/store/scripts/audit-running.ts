import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditRunning as script } from '../scripts.generated.ts'

/** @param holders - Counts that were not zero when the audit came by; see audit-tenants. */
export async function auditRunning(requests: Requests, holders: readonly string[], mode: AuditMode): Promise<Audited> {
  return decodeAudited(await requests.run(script, () => ({ ...modeArguments(mode), holders })))
}
