import type { Level } from '../../../src/store/names.ts'
import { byScore, type Claim } from './claim.ts'
import type { QueueState } from './queue-state.ts'
import type { Tenant } from './tenant.ts'

const GUARD_EVERY = 10
const OVERDUE_LOOKS = 4

export interface Turn {
  readonly name: string
  readonly level: Level
  readonly isGuarded: boolean
}

/** The next tenant of a level; every tenth turn goes to one that is overdue, wherever it stands. */
export function nextTurn(queue: QueueState, claim: Claim, level: Level, open: readonly Level[]): Turn | undefined {
  if (queue.values.max_wait > 0 && (queue.turns + 1) % GUARD_EVERY === 0) {
    const overdue = longestOverdue(queue, claim, open)
    if (overdue) {
      queue.turns += 1
      return { ...overdue, isGuarded: true }
    }
  }
  const line = claim.lines[level].sort(byScore)
  const next = line.shift()
  if (!next) return undefined
  claim.lookedAt[level].add(next.name)
  if (queue.tenant(next.name).stands[level].used === 0) queue.turns += 1
  return { name: next.name, level, isGuarded: false }
}

/**
 * The one that has been able to run for longest, and for too long, among the first few by the index that this claim
 * has not looked at. Entries that turn out to be too old are put right on the way.
 */
function longestOverdue(
  queue: QueueState,
  claim: Claim,
  open: readonly Level[],
): { name: string; level: Level } | undefined {
  const before = queue.now - queue.values.max_wait
  let oldest = Number.POSITIVE_INFINITY
  let found: { name: string; level: Level } | undefined
  for (const level of open) {
    if (before <= Math.max(queue.resumed[level], queue.resumed.queue)) continue
    const first = longestOverdueAt(queue, claim, level, before)
    if (!first || first.stands[level].since >= oldest) continue
    oldest = first.stands[level].since
    found = { name: first.name, level }
  }
  if (found) {
    const { name, level } = found
    claim.lookedAt[level].add(name)
    claim.lines[level] = claim.lines[level].filter((each) => each.name !== name)
  }
  return found
}

function longestOverdueAt(queue: QueueState, claim: Claim, level: Level, before: number): Tenant | undefined {
  const index = claim.since[level]
    .filter(({ since }) => since <= before)
    .sort((a, b) => a.since - b.since || (a.name < b.name ? -1 : 1))
  let longest: Tenant | undefined
  for (const { name } of index.slice(0, OVERDUE_LOOKS)) {
    const tenant = queue.tenant(name)
    const stand = tenant.stands[level]
    if (!stand.present || stand.since >= before) claim.misplaced.push(stand)
    else if (claim.lookedAt[level].has(name)) continue
    else if (!longest || stand.since < longest.stands[level].since) longest = tenant
  }
  return longest
}
