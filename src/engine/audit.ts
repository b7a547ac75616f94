import { boolean, checkOptions } from '../assert.ts'
import type { Requests } from '../store/requests.ts'
import { auditQueue } from '../store/scripts/audit-queue.ts'
import { auditTenant, type Difference } from '../store/scripts/audit-tenant.ts'
import { walkKeys } from '../store/scripts/read-keys.ts'

export interface AuditOptions {
  /** Put right what differs; false only looks. @default true */
  repair?: boolean
}

/** What an audit has found. */
export interface AuditReport {
  /** Tenants looked at. */
  readonly tenants: number
  /** What was not as it should be, the first thousand; with `repair`, it is now. */
  readonly differences: readonly Difference[]
  /** How many of each kind. */
  readonly counts: Readonly<Record<string, number>>
  /** What there was too much of to be looked at while the queue runs: names of tenants with very many lanes, or `delayed`, … */
  readonly skipped: readonly string[]
}

const KEYS_AT_ONCE = 500
const LISTED = 1_000

/** Keys of lanes name their tenant last; those of tenants only that. */
const ofLane = /^(?:lane|front):((?:high|normal|low):[^:]*):(.+)$/s
const ofTenant = /^(?:tenant|lanes|ring:(?:high|normal|low)):(.+)$/s

/** Everything the keys lead to. */
async function survey(requests: Requests): Promise<{ tenants: Map<string, Set<string>>; claims: string[] }> {
  const tenants = new Map<string, Set<string>>()
  const claims: string[] = []
  const lanesOf = (tenant: string): Set<string> => {
    const known = tenants.get(tenant) ?? new Set()
    tenants.set(tenant, known)
    return known
  }
  for await (const names of walkKeys(requests, KEYS_AT_ONCE)) {
    for (const name of names) {
      const [, lane, owner] = ofLane.exec(name) ?? []
      if (lane !== undefined && owner !== undefined) lanesOf(owner).add(lane)
      else if (name.startsWith('claim:')) claims.push(name)
      else lanesOfTenant(name)
    }
  }
  return { tenants, claims }

  function lanesOfTenant(name: string): void {
    const [, tenant] = ofTenant.exec(name) ?? []
    if (tenant !== undefined) lanesOf(tenant)
  }
}

/** Looks at the queue while it runs: each tenant in one step, then the whole. */
export async function audit(requests: Requests, options: AuditOptions): Promise<AuditReport> {
  const { repair: isRepairing } = checkOptions('audit', options, { repair: boolean({ default: true }) })
  const differences: Difference[] = []
  const counts: Record<string, number> = {}
  const skipped: string[] = []
  const add = (found: readonly Difference[]) => {
    for (const difference of found) {
      counts[difference.kind] = (counts[difference.kind] ?? 0) + 1
      if (differences.length < LISTED) differences.push(difference)
    }
  }
  const { tenants, claims } = await survey(requests)
  for (const [tenant, lanes] of tenants) {
    const found = await auditTenant(requests, tenant, { lanes: [...lanes], isRepairing })
    if (found) add(found)
    else skipped.push(`tenant:${tenant}`)
  }
  const met = [...[...tenants.keys()].map((tenant) => `tenant:${tenant}`), ...claims]
  const whole = await auditQueue(requests, { met, isRepairing })
  if (whole.word === 'audited') add(whole.differences)
  else skipped.push(whole.what)
  return { tenants: tenants.size, differences, counts, skipped }
}
