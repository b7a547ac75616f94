import { boolean, checkOptions } from '../../assert.ts'
import type { Difference } from '../../store/difference.ts'
import type { Requests } from '../../store/requests.ts'
import { AuditWalk } from './audit-walk.ts'

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

const LISTED = 1_000

/** Looks at the whole queue while it runs, one step after the other. */
export async function audit(requests: Requests, options: AuditOptions): Promise<AuditReport> {
  const { repair: isRepairing } = checkOptions('audit', options, { repair: boolean({ default: true }) })
  const walk = new AuditWalk(requests, { isRepairing })
  const differences: Difference[] = []
  const counts: Record<string, number> = {}
  const [tenants, skipped] = [new Set<string>(), new Set<string>()]
  while (!walk.isOver) {
    const found = await walk.step()
    for (const tenant of found.tenants ?? []) tenants.add(tenant)
    for (const what of found.skipped) skipped.add(what)
    for (const difference of found.differences) {
      counts[difference.kind] = (counts[difference.kind] ?? 0) + 1
      if (differences.length < LISTED) differences.push(difference)
    }
  }
  return { tenants: tenants.size, differences, counts, skipped: [...skipped] }
}
