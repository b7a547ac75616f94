import type { Requests } from '../requests.ts'
import { auditTenant as script } from '../scripts.generated.ts'

/** Something that is not as it should be. */
export interface Difference {
  /** What differs: `tenant.waiting`, `ready.normal.missing`, … */
  readonly kind: string
  /** The tenant, job, lane or claim it is about; empty for the queue's own counts. */
  readonly subject: string
  readonly expected: string
  readonly found: string
}

export type EncodedDifference = [kind: string, subject: string, expected: string, found: string]

export function decodeDifference([kind, subject, expected, found]: EncodedDifference): Difference {
  return { kind, subject, expected, found }
}

/** Undefined: it has too many lanes to be looked at in one script. @param lanes - Whose keys were met. */
export async function auditTenant(
  requests: Requests,
  tenant: string,
  options: { lanes: readonly string[]; isRepairing: boolean; nowUs?: string },
): Promise<Difference[] | undefined> {
  const reply = await requests.run('audit-tenant', script, () => ({
    nowGiven: options.nowUs ?? '',
    name: tenant,
    repairs: options.isRepairing ? 1 : 0,
    met: options.lanes,
  }))
  if (reply[0] === 'skipped') return undefined
  return (reply[1] as EncodedDifference[]).map(decodeDifference)
}
