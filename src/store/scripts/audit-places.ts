import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditPlaces as script } from '../scripts.generated.ts'

/** What stands in no lane, and can be walked over. */
export type WalkedPlaces = 'leases' | 'delayed' | 'aside' | 'dead' | 'letters'

/** `cursor`: where the next step goes on; `0` at the end. */
export async function auditPlaces(
  requests: Requests,
  from: { what: WalkedPlaces; cursor: string },
  mode: AuditMode,
): Promise<Audited & { readonly cursor: string }> {
  const reply = await requests.run(script, () => ({ ...modeArguments(mode), ...from }))
  return { ...decodeAudited(reply), cursor: reply[3] as string }
}
