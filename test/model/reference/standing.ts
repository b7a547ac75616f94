import { type Level, levels } from '../../../src/store/names.ts'
import { NEVER } from './bucket.ts'
import { activeWeights, beginPace, receivedBy, rollTenant, throttle } from './congestion.ts'
import type { QueueState } from './queue-state.ts'
import type { Stand, Tenant } from './tenant.ts'

/** Where a tenant stands: in line, parked, paused, or with nothing to do. */

/** µs by which the clock moves on with a turn. */
export const TURN = 64

export function newScore(queue: QueueState, tenant: Tenant): number {
  const { alpha, max_progress: most } = queue.values
  let progress = 0
  if (alpha !== 0) {
    const left = queue.pendingOf(tenant)
    progress = (alpha * 1000 * Math.max(0, tenant.total - left)) / Math.max(1, left)
    progress = Math.floor(Math.max(-most, Math.min(most, progress)))
  }
  return queue.tick(TURN) + tenant.base * 1000 + progress
}

export function settle(queue: QueueState, tenant: Tenant): void {
  for (const level of levels) {
    const stand = tenant.stands[level]
    const hasWork = tenant.hasWork(level)
    if (tenant.isFree && hasWork) {
      if (!stand.present) enter(queue, tenant, stand, level)
      continue
    }
    if (stand.present) {
      if (hasWork) stand.kept = stand.score
      leave(queue, tenant, stand, level)
    }
    if (!hasWork) {
      stand.used = 0
      stand.kept = undefined
    }
  }
}

/** Of one with new work: right before the turn that began last, behind those that came before it. */
function firstScore(queue: QueueState, tenant: Tenant, level: Level): number {
  if (queue.values.alpha !== 0) return newScore(queue, tenant)
  queue.entry[level] = queue.weights[level] > 0 ? queue.entry[level] + 1 : queue.tick()
  queue.clock = Math.max(queue.clock, queue.entry[level])
  return queue.entry[level] + tenant.base * 1000
}

function enter(queue: QueueState, tenant: Tenant, stand: Stand, level: Level): void {
  const hasStood = levels.some((each) => tenant.stands[each].present || tenant.stands[each].kept !== undefined)
  if (!hasStood) beginPace(tenant.pace, queue.now, receivedBy(tenant))
  else if (stand.kept !== undefined) rollTenant(queue, tenant, stand)
  if (!hasStood && activeWeights(queue) === 0) beginPace(queue.pace, queue.now, queue.started)
  stand.present = true
  if (stand.kept === undefined) stand.reached = Math.max(stand.reached, queue.reached[level])
  stand.score = stand.kept ?? firstScore(queue, tenant, level)
  stand.kept = undefined
  stand.since = queue.now
  stand.indexedSince = queue.now
  stand.virtual = queue.virtual[level]
  queue.weights[level] += tenant.share
}

function leave(queue: QueueState, tenant: Tenant, stand: Stand, level: Level): void {
  stand.present = false
  stand.since = queue.now
  queue.weights[level] = Math.max(0, queue.weights[level] - tenant.share)
  bookEntitlement(queue, tenant, stand, level)
}

function bookEntitlement(queue: QueueState, tenant: Tenant, stand: Stand, level: Level): void {
  stand.entitled += Math.floor(tenant.weight * (queue.virtual[level] - stand.virtual))
  stand.virtual = queue.virtual[level]
}

export function park(queue: QueueState, tenant: Tenant, until: number, limit: string): void {
  tenant.parking = { limit, until, isLifted: false }
  settle(queue, tenant)
  throttle(queue, tenant)
  queue.count('parked')
  // Less is no event: its limit paces it.
  if (until - queue.now >= 1_000_000 && until < NEVER) {
    queue.events.push(`type tenant.parked tenant ${tenant.name} reason ${limit} until ${until}`)
  }
}

export function unpark(queue: QueueState, tenant: Tenant): void {
  if (!tenant.parking) return
  tenant.parking = undefined
  queue.count('unparked')
  settle(queue, tenant)
}

export function rebase(tenant: Tenant, base: number): void {
  const difference = (base - tenant.base) * 1000
  for (const level of levels) {
    const stand = tenant.stands[level]
    if (stand.present) stand.score += difference
    else if (stand.kept !== undefined) stand.kept += difference
  }
  tenant.base = base
}

export function reweigh(queue: QueueState, tenant: Tenant, weight: number): void {
  const present = levels.filter((level) => tenant.stands[level].present)
  for (const level of present) {
    bookEntitlement(queue, tenant, tenant.stands[level], level)
    queue.weights[level] -= tenant.share
  }
  tenant.weight = weight
  for (const level of present) queue.weights[level] += tenant.share
}
