import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditRunning as script } from '../scripts.generated.ts'

export async function auditRunning(requests: Requests, mode: AuditMode): Promise<Audited> {
  return decodeAudited(await requests.run(script, () => modeArguments(mode)))
}
