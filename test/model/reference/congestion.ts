import { type Level, levels } from '../../../src/store/names.ts'
import type { TenantPace } from '../../../src/store/scripts/read-actions.ts'
import { limitsAt, limitsOf } from './limits.ts'
import type { OpenLimit } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import type { Stand, Tenant } from './tenant.ts'
import { OpenWindow } from './window.ts'

/** How fast a tenant is served, and what that makes of its backlog. */

const SECOND = 1_000_000
const SLOT = 5 * SECOND
const RANKED_FROM = 8
/** Backoffs, in seconds. */
const COUNTED_UP_TO = [1, 2, 3, 5, 10, 20, 30, 60, 119, 300, 900, 3_600]

/** What had started until the slot of time in which that was last looked at, and what had in the two before. */
export interface Pace {
  slot: number
  received: number
  before: number
  earlier: number
  since: number
}

export function newPace(): Pace {
  return { slot: 0, received: 0, before: 0, earlier: 0, since: 0 }
}

/** There is something to do again. @param received - All that has started so far. */
export function beginPace(pace: Pace, now: number, received: number): void {
  Object.assign(pace, { slot: slotOf(now), received, before: 0, earlier: 0, since: now })
}

/** Looked at in another slot. Answers whether it was. */
export function rollPace(pace: Pace, now: number, received: number): boolean {
  const slot = slotOf(now)
  const steps = slot - pace.slot
  if (steps === 0) return false
  const starts = received - pace.received
  pace.earlier = steps === 1 ? pace.before : steps === 2 ? starts : 0
  pace.before = steps === 1 ? starts : 0
  pace.slot = slot
  pace.received = received
  return true
}

/** A tenant has a turn, or enters the line: it looks back with the first of a slot. */
export function rollTenant(queue: QueueState, tenant: Tenant, stand: Stand): void {
  if (stand.since >= slotOf(queue.now) * SLOT) return
  if (rollPace(tenant.pace, queue.now, receivedBy(tenant))) tenant.isPacedAnew = true
}

function slotOf(now: number): number {
  return Math.floor(now / SLOT)
}

function measured(pace: Pace, now: number, received: number): number {
  const seen = { ...pace }
  rollPace(seen, now, received)
  const rest = 1 - (now % SLOT) / SLOT
  return ((received - seen.received + seen.before + seen.earlier * rest) * SECOND) / (2 * SLOT)
}

/** Of so many that wait. A window that has room for all of them holds nobody back. */
function rateOf(queue: QueueState, limits: readonly OpenLimit[], waiting: number): number {
  const rates = limits.map(({ rule, meter }) => {
    if (rule.kind === 'bucket') return (rule.count * SECOND) / rule.window
    if (rule.kind !== 'window' || !(meter instanceof OpenWindow)) return Infinity
    const left = Math.max(0, rule.count - meter.used)
    const windows = Math.ceil((waiting - left) / rule.count)
    if (windows <= 0) return Infinity
    return (waiting * SECOND) / (meter.stop - queue.now + (windows - 1) * rule.window)
  })
  return Math.min(Infinity, ...rates)
}

function hundredths(speed: number): number {
  return Math.floor(speed * 100 + 0.5) / 100
}

function speedOf(queue: QueueState, tenant: Tenant): { speed: number; isMeasured: boolean } {
  const ownLimits = limitsOf(queue, tenant).filter(({ isShare }) => !isShare)
  const own = rateOf(queue, ownLimits, queue.jobsOf(tenant.name, 'waiting').length)
  const waiting = queue.jobs.filter(({ state }) => state === 'waiting').length
  const ofQueue = rateOf(queue, limitsAt(queue, 'queue'), waiting)
  const weight = tenant.weight * 1000
  const lines = levels.filter((level) => tenant.stands[level].present).length
  const weights = activeWeights(queue) - Math.max(0, lines - 1) * weight
  const share = weight / Math.max(weights, weight)
  return speed(queue.now, tenant.pace, receivedBy(tenant), Math.min(own, ofQueue * share))
}

function speed(now: number, pace: Pace, received: number, rate: number): { speed: number; isMeasured: boolean } {
  const now10 = measured(pace, now, received)
  if (pace.since > 0 && now - pace.since >= 2 * SLOT) return { speed: hundredths(now10), isMeasured: true }
  const soFar = (now10 * 2 * SLOT) / Math.max(SECOND, now - pace.since)
  return { speed: hundredths(Math.max(1, rate === Infinity ? soFar : rate)), isMeasured: false }
}

/** Of those in line on each level, and of the parked. */
export function activeWeights(queue: QueueState): number {
  return levels.reduce((sum, level: Level) => sum + queue.weights[level], parkedWeights(queue))
}

export function parkedWeights(queue: QueueState): number {
  return queue.tenants.filter(({ parking }) => parking).reduce((sum, { share }) => sum + share, 0)
}

/** In µs. */
function backoffOf(queue: QueueState, waiting: number, speedNow: number): number {
  const { congestion, base_backoff: base, max_backoff: most } = queue.values
  return congestion ? Math.min(most, base + Math.floor(waiting / (speedNow || 1)) * SECOND) : base
}

/** What the actions of a tenant share, while anything of it waits. */
export function tenantPace(queue: QueueState, name: string): TenantPace | undefined {
  const tenant = queue.tenants.find((each) => each.name === name)
  const waiting = queue.jobsOf(name, 'waiting').length
  if (!tenant || waiting === 0) return undefined
  const speedNow = speedOf(queue, tenant).speed
  return {
    waiting,
    lanes: levels.reduce((sum, level) => sum + tenant.turns[level].length, 0),
    speed: speedNow,
    backoffMs: backoffOf(queue, waiting, speedNow) / 1000,
    baseBackoffMs: queue.values.base_backoff / 1000,
  }
}

/** A job is pushed back, nobody said for how long: in µs. */
export function backOff(queue: QueueState, tenant: Tenant): number {
  const backoff = backoffOf(queue, queue.jobsOf(tenant.name, 'waiting').length, speedOf(queue, tenant).speed)
  queue.count(`backoff:${COUNTED_UP_TO.find((seconds) => backoff <= seconds * SECOND) ?? 'more'}`)
  queue.count('backoff_ms', Math.floor(backoff / 1000))
  return backoff
}

/** Parked by a limit, or pushed back by the upstream. */
export function throttle(queue: QueueState, tenant: Tenant): void {
  tenant.throttles = { count: tenant.throttles.count + 1, second: Math.floor(queue.now / SECOND) }
}

/** Nothing else is to be done for the tenant of an action that has ended. */
export function endStatistics(queue: QueueState): void {
  for (const action of queue.script.over) {
    const tenant = queue.tenants.find(({ name }) => name === action.tenant)
    if (!tenant) continue
    const left = [...queue.jobsOf(tenant.name, 'waiting'), ...queue.jobsOf(tenant.name, 'delayed')]
    const others = queue.jobsOf(tenant.name, 'running').filter((job) => job.action !== action)
    if (left.length + others.length === 0) resetStatistics(queue, tenant)
  }
}

function resetStatistics(queue: QueueState, tenant: Tenant): void {
  tenant.throttles = { count: 0, second: 0 }
  tenant.backoff = 0
  tenant.uncounted = receivedBy(tenant) - queue.jobsOf(tenant.name, 'running').length
}

export function receivedBy({ stands, costs }: Tenant): number {
  return levels.reduce((sum, level) => sum + stands[level].received, -costs)
}

/** Its place by backlog is looked at when that has grown by a binary digit, with a new slot of time, and when nothing is left. */
export function rankAll(queue: QueueState): void {
  for (const tenant of queue.tenants) {
    const waiting = queue.jobsOf(tenant.name, 'waiting').length
    if (waiting === 0) tenant.ranked = 0
    else if (waiting >= RANKED_FROM && (tenant.hasGrown || tenant.isPacedAnew)) tenant.ranked = digitsOf(waiting)
    else if (tenant.isPacedAnew) tenant.ranked = 0
  }
}

export function digitsOf(count: number): number {
  return count.toString(2).length
}
