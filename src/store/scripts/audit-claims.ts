import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditClaims as script } from '../scripts.generated.ts'

/** `lookedAt`: how many of them, the first ones; the others are for another call. */
export async function auditClaims(
  requests: Requests,
  fences: readonly string[],
  mode: AuditMode,
): Promise<Audited & { readonly lookedAt: number }> {
  const reply = await requests.run(script, () => ({ ...modeArguments(mode), fences }))
  const [, , , lookedAt, skipped] = reply as [string, string, unknown, number, string[]]
  return { ...decodeAudited(reply), skipped, lookedAt }
}
