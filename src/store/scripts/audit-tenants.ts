import { type Audited, type AuditMode, decodeAudited, modeArguments } from '../difference.ts'
import type { Requests } from '../requests.ts'
import { auditTenants as script } from '../scripts.generated.ts'

/** A tenant to look at, with the lanes of it whose keys were met. */
export interface MetTenant {
  readonly name: string
  readonly lanes: readonly string[]
}

export interface AuditedTenants extends Audited {
  /** How many of them, the first ones: the others are for another call. */
  readonly lookedAt: number
}

export async function auditTenants(
  requests: Requests,
  tenants: readonly MetTenant[],
  mode: AuditMode,
): Promise<AuditedTenants> {
  const met = tenants.flatMap(({ name, lanes }) => [name, lanes.length, ...lanes])
  const reply = await requests.run(script, () => ({ ...modeArguments(mode), met }))
  const [, , , lookedAt, skipped] = reply as [string, string, unknown, number, string[]]
  return { ...decodeAudited(reply), skipped, lookedAt }
}
