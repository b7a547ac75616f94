import { type Level, levels } from '../../store/names.ts'
import { TURN } from './instants.ts'
import { available } from './meters.ts'
import { goesBefore } from './sorted-line.ts'
import type { VirtualQueue } from './virtual-queue.ts'
import type { VirtualTenant } from './virtual-tenant.ts'

/** Whose turn it is: as turns.lua and guard.lua decide it, which say why. */

/** Tenants that are looked at in one claim. */
export const LOOKS = 64
const GUARD_EVERY = 10
const GUARD_LOOKS = 4
/** Tenants that are ahead of the rounds and keep their place. */
const MOST_AHEAD = 8

/** A level's line: the set as it was when the script began, from `next` on, merged with whom the script put back. */
interface Line {
  next: number
  readonly extra: VirtualTenant[]
}

export type Lines = Readonly<Record<Level, Line>>

/** As far as turns know it. */
interface Claim {
  looks: number
  readonly lines: Lines
}

export interface Turn {
  readonly tenant: VirtualTenant
  readonly isGuarded: boolean
}

/** Puts a tenant back in line, by its score. */
export function insert({ lines }: Claim, tenant: VirtualTenant): void {
  const { extra } = lines[tenant.level]
  let at = extra.length
  while (at > 0 && goesBefore(tenant, extra[at - 1] as VirtualTenant)) at -= 1
  extra.splice(at, 0, tenant)
}

/** The next tenant of the level; every tenth turn goes to one that is overdue, wherever it stands. */
export function nextTurn(queue: VirtualQueue, claim: Claim, level: Level): Turn | undefined {
  const { values } = queue
  if (values.max_wait > 0 && (queue.turnsTaken + 1) % GUARD_EVERY === 0) {
    const overdue = longestOverdue(queue)
    if (overdue) {
      overdue.isLookedAt = true
      queue.turnsTaken += 1
      return { tenant: overdue, isGuarded: true }
    }
  }
  // Progress is an order of its own.
  const isByProgress = values.alpha !== 0
  const tenant = isByProgress ? firstInLine(queue, claim, level) : firstBehind(queue, claim, level)
  if (!tenant) return undefined
  if (!isByProgress) beginTurn(queue, tenant)
  if (tenant.used === 0) queue.turnsTaken += 1
  return { tenant, isGuarded: false }
}

/** It has been served. A round has come as far as the one that has used most of its turn. */
export function advance(queue: VirtualQueue, tenant: VirtualTenant, got: number): void {
  if (queue.values.alpha !== 0) return
  const { weight, level } = tenant
  tenant.reached += Math.floor((got * 1000) / weight + 0.5)
  if (!standsByTurn(queue, tenant)) return
  const quantum = queue.values.quantum * 1000
  const part = Math.min(quantum - 1, Math.floor(tenant.used / weight))
  queue.reached[level] = Math.max(queue.reached[level], queue.reached[level] - (queue.reached[level] % quantum) + part)
}

/** It is out of line until it is put back. */
function firstInLine(queue: VirtualQueue, { lines }: Claim, level: Level): VirtualTenant | undefined {
  const line = lines[level]
  const set = queue.ready[level]
  let first = set.at(line.next)?.of
  while (first?.isLookedAt) {
    line.next += 1
    first = set.at(line.next)?.of
  }
  const [other] = line.extra
  if (other && (!first || goesBefore(other, first))) return line.extra.shift()
  if (first) {
    line.next += 1
    first.isLookedAt = true
    queue.touch(first)
  }
  return first
}

/** The first in line; tenants with new work that are a turn ahead of the rounds let it go first. */
function firstBehind(queue: VirtualQueue, claim: Claim, level: Level): VirtualTenant | undefined {
  let tenant = firstInLine(queue, claim, level)
  if (!tenant || !isAhead(queue, tenant)) return tenant
  const ahead: VirtualTenant[] = []
  while (tenant && claim.looks < LOOKS && isAhead(queue, tenant)) {
    if (ahead.length < MOST_AHEAD) ahead.push(tenant)
    else {
      tenant.score = queue.newScore(tenant)
      insert(claim, tenant)
      claim.looks += 1
    }
    tenant = firstInLine(queue, claim, level)
  }
  if (!tenant) {
    tenant = ahead.reduce((least, each) => (each.reached < least.reached ? each : least))
    ahead.splice(ahead.indexOf(tenant), 1)
    queue.reached[level] = tenant.reached
  }
  for (const each of ahead) insert(claim, each)
  return tenant
}

function isAhead(queue: VirtualQueue, tenant: VirtualTenant): boolean {
  const { quantum } = queue.values
  return !standsByTurn(queue, tenant) && tenant.reached - queue.reached[tenant.level] >= quantum * 1000
}

/** Its place in line is that of a turn, not the one that it had when it came. */
function standsByTurn(queue: VirtualQueue, tenant: VirtualTenant): boolean {
  return startOf(tenant) > queue.entry[tenant.level]
}

function startOf({ score, basePriority }: VirtualTenant): number {
  return score - basePriority * 1000
}

/** Whoever comes into line from now on stands right before this turn. */
function beginTurn(queue: VirtualQueue, tenant: VirtualTenant): void {
  if (!standsByTurn(queue, tenant)) return
  const { level } = tenant
  const start = Math.min(queue.clock, startOf(tenant))
  queue.entry[level] = Math.max(queue.entry[level], start - TURN)
  if (start <= queue.round[level]) return
  const quantum = queue.values.quantum * 1000
  queue.round[level] = queue.clock
  queue.reached[level] += quantum - (queue.reached[level] % quantum)
}

/** The tenant that has been able to run for longest, if that is longer than anyone should wait. */
function longestOverdue(queue: VirtualQueue): VirtualTenant | undefined {
  const before = queue.now - queue.values.max_wait
  if (before <= 0) return undefined
  let oldest: VirtualTenant | undefined
  for (const level of levels) {
    if (queue.weights[level] === 0 || available(queue.limits[level], queue.now) === 0) continue
    const longest = longestOverdueAt(queue, level, before)
    if (longest && (!oldest || longest.since < oldest.since)) oldest = longest
  }
  return oldest
}

/** The set is not written with every turn: a tenant may have had one since. Where that turns out, it is put right. */
function longestOverdueAt(queue: VirtualQueue, level: Level, before: number): VirtualTenant | undefined {
  let longest: VirtualTenant | undefined
  for (let at = 0; at < GUARD_LOOKS; at++) {
    const place = queue.index[level].at(at)
    if (!place || place.score > before) return longest
    const tenant = place.of
    queue.touch(tenant)
    if (!tenant.isInLine || tenant.since >= before) tenant.isCorrected = true
    else if (!tenant.isLookedAt && (!longest || tenant.since < longest.since)) longest = tenant
  }
  return longest
}
