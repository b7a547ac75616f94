import { actionOfLane } from '../../../src/store/names.ts'
import type { FinishedJob } from '../../../src/store/scripts/finish-and-claim.ts'
import { endJob, keepResult, measure, meet } from './acting.ts'
import { backOff, throttle } from './congestion.ts'
import {
  bury,
  comeBack,
  endCanceled,
  endInLane,
  freeSlot,
  isDropped,
  noLongerRuns,
  postpone,
  tellOfJob,
} from './ending.ts'
import { learnAll } from './lessons.ts'
import { refund, release } from './limits.ts'
import type { QueueState } from './queue-state.ts'
import { unpark } from './standing.ts'
import { type History, isOrdered, type Job, noHistory } from './tenant.ts'

/** What a worker tells of the jobs it has had. */

/** Successes come first, by claim and by tenant and level, unless their lane is ordered; then the others. */
export function finishAll(
  queue: QueueState,
  client: string,
  finished: readonly FinishedJob[],
  givenBack: Job[],
  told: Set<string>,
): number[] {
  const stale: number[] = []
  const take = (each: FinishedJob, index: number): Job | undefined => {
    told.add(each.fence)
    const lease = queue.lease(each.fence)
    const job = lease?.jobs.find(({ key }) => key === each.jobKey)
    if (lease && job) lease.jobs.splice(lease.jobs.indexOf(job), 1)
    else stale.push(index)
    return job
  }
  const indexed = finished.map((each, index) => ({ each, index }))
  const isPlain = ({ finish, jobKey, isSpecial }: FinishedJob): boolean =>
    finish.outcome === 'succeeded' && !isSpecial && !isOrdered(jobKey.split(':')[1] as string)
  for (const ofClaim of groupBy(indexed, ({ each }) => each.fence).values()) {
    const plain = ofClaim.filter(({ each }) => isPlain(each))
    for (const group of groupBy(plain, ({ each }) => groupOf(each)).values()) {
      const taken = group.flatMap(({ each, index }) => {
        const job = take(each, index)
        return job ? [{ job, each }] : []
      })
      for (const { job } of taken) {
        release(queue, queue.tenant(job.tenant), job.standing, job)
        succeed(queue, job)
      }
      const [first] = taken
      if (first) freeSlot(queue, queue.tenant(first.job.tenant))
      tellAction(
        queue,
        group.map(({ each }) => each),
        taken,
      )
    }
  }
  for (const { each, index } of indexed) {
    if (isPlain(each)) continue
    const job = take(each, index)
    if (job) finishOne(queue, job, each, givenBack)
  }
  learnAll(queue, finished)
  queue.leases = queue.leases.filter(
    ({ jobs, fence, client: holder }) => jobs.length > 0 || holder !== client || !told.has(fence),
  )
  return stale
}

/** Jobs of an action are told apart from the others of their tenant and level. */
function groupOf({ standing, jobKey }: FinishedJob): string {
  const [, lane = '', , tenant = ''] = jobKey.split(':')
  return `${standing}:${tenant}:${actionOfLane(lane) === undefined ? '' : lane}`
}

/** What a group took is told as one: all of it counts when any of its jobs is still the worker's. */
function tellAction(
  queue: QueueState,
  group: readonly FinishedJob[],
  taken: readonly { job: Job; each: FinishedJob }[],
): void {
  const [first] = group
  const action = first && queue.jobs.find(({ key }) => key === first.jobKey)?.action
  if (!action) return
  meet(queue, action)
  if (taken.length > 0) for (const each of group) if (each.action) measure(action, each.action)
  for (const { job, each } of taken) if (each.action) keepResult(action, job, each.action)
}

function finishOne(queue: QueueState, job: Job, told: FinishedJob, givenBack: Job[]): void {
  const { fence, finish } = told
  const tenant = queue.tenant(job.tenant)
  const { isCanceling } = job
  const members = new Map(job.members)
  noLongerRuns(queue, tenant, job)
  const history: History = { ...(job.history ?? noHistory) }
  if (finish.outcome === 'succeeded') {
    succeed(queue, job)
    tellAction(queue, [told], [{ job, each: told }])
    endInLane(queue, tenant, job)
    return
  }
  const isDiscarded = isCanceling || isDropped(job)
  if (finish.outcome === 'dead') {
    if (isDiscarded) {
      endCanceled(queue, tenant, job)
      return
    }
    if (finish.reason === 'failed' || finish.reason === 'discarded') history.attempts += 1
    if (finish.reason === 'throttled') history.throttles += 1
    job.history = { ...history, since: 0, reason: finish.reason, error: finish.error }
    bury(queue, job, finish.reason, messageOf(finish.error))
    if (finish.reason === 'throttled') throttle(queue, tenant)
    tellAction(queue, [told], [{ job, each: told }])
    endInLane(queue, tenant, job)
    return
  }
  // Neither was started: the permits go back.
  if (finish.outcome === 'returned' || finish.outcome === 'unknown') {
    refund(queue, tenant, job, { members, fence: Number(fence), isStale: finish.outcome === 'returned' })
    unpark(queue, tenant)
  }
  queue.count(finish.outcome === 'retry' ? 'retried' : finish.outcome === 'unknown' ? 'unknownType' : finish.outcome)
  if (isDiscarded) {
    endCanceled(queue, tenant, job)
  } else if (finish.outcome === 'returned' || finish.outcome === 'released') {
    comeBack(queue, job)
    givenBack.push(job)
    tenant.uncounted += 1
  } else {
    if (history.reason !== 'unknown-type' || finish.outcome !== 'unknown') history.since = Math.floor(queue.now / 1000)
    if (finish.outcome === 'retry') {
      history.attempts += 1
      history.reason = 'retry'
      history.error = finish.error
      tellOfJob(queue, 'failed', job, messageOf(finish.error))
    } else if (finish.outcome === 'throttled') {
      history.throttles += 1
      history.reason = 'upstream'
    } else {
      history.reason = 'unknown-type'
    }
    job.history = history
    const delay = finish.delayMs === undefined ? backOff(queue, tenant) : Math.round(finish.delayMs * 1000)
    if (finish.outcome === 'throttled') {
      throttle(queue, tenant)
      tenant.backoff = Math.floor(delay / 1000)
    }
    tenant.uncounted += 1
    postpone(queue, job, queue.now + delay)
  }
}

function succeed(queue: QueueState, job: Job): void {
  job.state = 'succeeded'
  job.fence = ''
  job.members.clear()
  job.isCanceling = false
  endJob(queue, job, 'succeeded')
  queue.count('succeeded')
}

function messageOf(error: string): string {
  return (JSON.parse(error) as { message: string }).message
}

function groupBy<T>(list: readonly T[], key: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of list) groups.set(key(each), [...(groups.get(key(each)) ?? []), each])
  return groups
}
