import { abortSignal, boolean, callback, checkOptions, optional, text } from '../../assert.ts'
import type { Difference } from '../../store/difference.ts'
import type { Requests } from '../../store/requests.ts'
import { isUint64 } from '../../store/uint64.ts'
import { AuditWalk, auditParts } from './audit-walk.ts'

export interface AuditOptions {
  /** Put right what differs; false only looks. @default true */
  repair?: boolean
  /** Go on where an earlier one ended: the `cursor` of its report. What that had found is not in this one's. */
  cursor?: string
  /** Ends it when it has come to the next place where another can go on; the report then has a `cursor`. */
  signal?: AbortSignal
  /** Told after each step. */
  onProgress?: (progress: AuditProgress) => void
}

/** How far an audit has come. */
export interface AuditProgress {
  /** What it looks at next: records `aside`, then `keys` and what they lead to, then what else stands in no lane, last the sums; `end` when it is over. */
  readonly part: string
  /** Tenants looked at so far. */
  readonly tenants: number
  /** Differences found so far. */
  readonly differences: number
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
  /** Where to go on; undefined: all was looked at. */
  readonly cursor: string | undefined
}

const LISTED = 1_000
/** Of a report: a part, and how far it is. */
function isCursor(text: string): boolean {
  const [part, at = '', ...rest] = text.split('.')
  return auditParts.some((known) => known === part) && isUint64(at) && rest.length === 0
}

/** Looks at the whole queue while it runs, one step after the other. */
export async function audit(requests: Requests, options: AuditOptions): Promise<AuditReport> {
  const {
    repair: isRepairing,
    cursor,
    signal,
    onProgress,
  } = checkOptions('audit', options, {
    repair: boolean({ default: true }),
    cursor: optional(text({ pattern: { test: isCursor, words: 'the cursor of an earlier audit' } })),
    signal: optional(abortSignal),
    onProgress: optional(callback<NonNullable<AuditOptions['onProgress']>>()),
  })
  const walk = new AuditWalk(requests, { isRepairing }, cursor?.replace('.', ' '))
  const differences: Difference[] = []
  const counts: Record<string, number> = {}
  const [tenants, skipped] = [new Set<string>(), new Set<string>()]
  const start = walk.position
  // What is under way is looked at again by whoever goes on: so it ends only where that is further than it began.
  while (!walk.isOver && !(signal?.aborted && walk.position !== start)) {
    const found = await walk.step()
    for (const tenant of found.tenants ?? []) tenants.add(tenant)
    for (const what of found.skipped) skipped.add(what)
    for (const difference of found.differences) {
      counts[difference.kind] = (counts[difference.kind] ?? 0) + 1
      if (differences.length < LISTED) differences.push(difference)
    }
    const number = Object.values(counts).reduce((sum, count) => sum + count, 0)
    onProgress?.({ part: walk.position.split(' ')[0] ?? '', tenants: tenants.size, differences: number })
  }
  const goesOnAt = walk.isOver ? undefined : walk.position.replace(' ', '.')
  return { tenants: tenants.size, differences, counts, skipped: [...skipped], cursor: goesOnAt }
}
