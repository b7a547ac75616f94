import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditDelayed as script } from '../scripts.generated.ts'

export async function auditDelayed(requests: Requests, mode: AuditMode): Promise<Audited> {
  return decodeAudited(await requests.run(script, () => modeArguments(mode)))
}
