import { meet } from './acting.ts'
import { bury, comeBack, endCanceled, endInLane, isDropped, noLongerRuns, postpone, tellOfJob } from './ending.ts'
import { keepMark } from './marks.ts'
import type { QueueState } from './queue-state.ts'
import { settle } from './standing.ts'
import { type History, type Job, noHistory, type Parking, type Tenant } from './tenant.ts'

/** What is due: jobs whose lease ran out, delayed jobs, and parked tenants. */

export const DUE_AT_ONCE = 64
export const STALLED_AT_ONCE = 256

export interface DueTenant {
  readonly tenant: Tenant
  readonly parking: Parking
}

export function reap(queue: QueueState, givenBack: Job[], ended: ReadonlySet<string>): number {
  let broughtBack = 0
  const expired = queue.leases.filter(({ until }) => until <= queue.now).slice(0, DUE_AT_ONCE)
  for (const lease of expired) {
    if (broughtBack >= STALLED_AT_ONCE) break
    if (ended.has(lease.fence)) continue
    for (const job of inLaneOrder(lease.jobs)) {
      const tenant = queue.tenant(job.tenant)
      const { isCanceling } = job
      noLongerRuns(queue, tenant, job)
      if (isCanceling || isDropped(job)) endCanceled(queue, tenant, job)
      else stall(queue, tenant, job, givenBack)
      broughtBack += 1
    }
    queue.leases.splice(queue.leases.indexOf(lease), 1)
  }
  return broughtBack
}

/** A claim does not keep the order of its jobs: it is known by their lanes and numbers. */
export function inLaneOrder(jobs: readonly Job[]): Job[] {
  const laneOf = ({ level, lane, tenant }: Job): string => `${level}:${lane}:${tenant}`
  const byLane = (a: Job, b: Job): number => (laneOf(a) < laneOf(b) ? -1 : laneOf(a) > laneOf(b) ? 1 : 0)
  return [...jobs].sort((a, b) => byLane(a, b) || Number(a.sequence) - Number(b.sequence) || (a.key < b.key ? -1 : 1))
}

function stall(queue: QueueState, tenant: Tenant, job: Job, givenBack: Job[]): void {
  const history: History = { ...(job.history ?? noHistory), since: Math.floor(queue.now / 1000), reason: 'stall' }
  history.stalls += 1
  job.history = history
  queue.count('stalled')
  tellOfJob(queue, 'stalled', job, 'lease')
  if (history.stalls > queue.values.max_stalls) {
    bury(queue, job, 'stalled')
    endInLane(queue, tenant, job)
    return
  }
  tenant.uncounted += 1
  if (history.stalls === 1) {
    comeBack(queue, job)
    givenBack.push(job)
  } else {
    postpone(queue, job, queue.now + (2 ** (history.stalls - 1) - 1) * 1_000_000)
  }
}

export function dueJobs(queue: QueueState): Job[] {
  return queue.jobs
    .filter((job) => (job.state === 'delayed' || job.isLingering) && job.at <= queue.now)
    .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
    .slice(0, DUE_AT_ONCE)
}

export function fallDue(queue: QueueState, jobs: readonly Job[]): void {
  for (const job of jobs) {
    const action = job.action
    if (action) meet(queue, action)
    if (job.isLingering) {
      job.isLingering = false
      keepMark(queue, job)
      continue
    }
    const tenant = queue.tenant(job.tenant)
    const lane = tenant.lane(job.level, job.lane)
    comeBack(queue, job)
    queue.count('promoted')
    if (lane.busy === job) lane.busy = undefined
    lane.front.push(job)
    queue.script.broughtBack.add(job)
    tenant.joinTurns(lane)
    settle(queue, tenant)
  }
}

/** Tenants parked under limits that have changed since. */
export function liftedTenants(queue: QueueState): Tenant[] {
  return parkedTenants(queue)
    .filter(({ parking }) => parking.isLifted)
    .map(({ tenant }) => tenant)
    .slice(0, DUE_AT_ONCE)
}

/** Tenants whose instant has come, with the parking that is over. */
export function dueTenants(queue: QueueState): DueTenant[] {
  return parkedTenants(queue)
    .filter(({ parking }) => !parking.isLifted && parking.until <= queue.now)
    .slice(0, DUE_AT_ONCE)
}

function parkedTenants(queue: QueueState): DueTenant[] {
  return queue.tenants
    .flatMap((tenant) => (tenant.parking ? [{ tenant, parking: tenant.parking }] : []))
    .sort((a, b) => a.parking.until - b.parking.until || (a.tenant.name < b.tenant.name ? -1 : 1))
}

/** They keep their order at the front of their lanes. */
export function settleGivenBack(queue: QueueState, jobs: Job[]): void {
  jobs.sort((a, b) => Number(b.sequence) - Number(a.sequence) || (a.key > b.key ? -1 : 1))
  for (const job of jobs) {
    const tenant = queue.tenant(job.tenant)
    const lane = tenant.lane(job.level, job.lane)
    if (lane.busy === job) lane.busy = undefined
    lane.front.unshift(job)
    queue.script.broughtBack.add(job)
    tenant.joinTurns(lane)
    settle(queue, tenant)
  }
}
