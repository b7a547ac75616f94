import type { Level } from '../../../src/store/names.ts'
import { byScore, type Claim } from './claim.ts'
import { limitsAt } from './limits.ts'
import { least } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import { newScore, TURN } from './standing.ts'
import type { Tenant } from './tenant.ts'

const GUARD_EVERY = 10
const OVERDUE_LOOKS = 4
/** Tenants that are looked at in one claim. */
export const LOOKS = 64
/** Tenants that are ahead of the rounds and keep their place in line. */
const MOST_AHEAD = 8

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
  // Progress is an order of its own.
  const isByProgress = queue.values.alpha !== 0
  const tenant = isByProgress ? firstInLine(queue, claim, level) : firstBehind(queue, claim, level)
  if (!tenant) return undefined
  if (!isByProgress) beginTurn(queue, tenant, level)
  if (tenant.stands[level].used === 0) queue.turns += 1
  return { name: tenant.name, level, isGuarded: false }
}

function firstInLine(queue: QueueState, claim: Claim, level: Level): Tenant | undefined {
  const line = claim.lines[level].sort(byScore)
  for (let next = line.shift(); next; next = line.shift()) {
    claim.lookedAt[level].add(next.name)
    const tenant = queue.tenant(next.name)
    if (tenant.stands[level].present) return tenant
  }
  return undefined
}

/** Its place in line is that of a turn, not the one that it had when it came. */
function standsByTurn(queue: QueueState, tenant: Tenant, level: Level): boolean {
  return startOf(tenant, level) > queue.entry[level]
}

function startOf({ base, stands }: Tenant, level: Level): number {
  return stands[level].score - base * 1000
}

/** The first in line; tenants that are a turn ahead of the rounds let it go first. */
function firstBehind(queue: QueueState, claim: Claim, level: Level): Tenant | undefined {
  const ahead: Tenant[] = []
  const aheadBy = (tenant: Tenant): number => tenant.stands[level].reached - queue.reached[level]
  let tenant = firstInLine(queue, claim, level)
  while (tenant && claim.looks < LOOKS) {
    if (standsByTurn(queue, tenant, level) || aheadBy(tenant) < queue.values.quantum * 1000) break
    if (ahead.length < MOST_AHEAD) {
      ahead.push(tenant)
    } else {
      tenant.stands[level].score = newScore(queue, tenant)
      claim.lines[level].push({ name: tenant.name, score: tenant.stands[level].score })
      claim.looks += 1
    }
    tenant = firstInLine(queue, claim, level)
  }
  if (!tenant && ahead.length > 0) {
    const least = Math.min(...ahead.map(aheadBy))
    const at = ahead.findIndex((each) => aheadBy(each) === least)
    tenant = ahead.splice(at, 1)[0] as Tenant
    queue.reached[level] = tenant.stands[level].reached
  }
  for (const { name, stands } of ahead) claim.lines[level].push({ name, score: stands[level].score })
  return tenant
}

/** Whoever comes into line from now on stands right before this turn. */
function beginTurn(queue: QueueState, tenant: Tenant, level: Level): void {
  if (!standsByTurn(queue, tenant, level)) return
  const quantum = queue.values.quantum * 1000
  const start = Math.min(queue.clock, startOf(tenant, level))
  queue.entry[level] = Math.max(queue.entry[level], start - TURN)
  if (start <= queue.round[level]) return
  queue.round[level] = queue.clock
  queue.reached[level] = (Math.floor(queue.reached[level] / quantum) + 1) * quantum
}

/** It has been served. A round has come as far as the one that has used most of its turn. */
export function advance(queue: QueueState, tenant: Tenant, level: Level, cost: number): void {
  if (queue.values.alpha !== 0) return
  tenant.stands[level].reached += Math.floor((cost * 1000) / tenant.weight + 0.5)
  if (!standsByTurn(queue, tenant, level)) return
  const quantum = queue.values.quantum * 1000
  const part = Math.min(quantum - 1, Math.floor(tenant.stands[level].used / tenant.weight))
  const come = Math.floor(queue.reached[level] / quantum) * quantum + part
  queue.reached[level] = Math.max(queue.reached[level], come)
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
    if (claim.saving.has(level) || least(limitsAt(queue, level)).permits === 0) continue
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
