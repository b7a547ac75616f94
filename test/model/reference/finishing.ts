import type { FinishedJob } from '../../../src/store/scripts/finish-and-claim.ts'
import { bury, endCanceled, endInLane, freeSlot, noLongerRuns, postpone } from './ending.ts'
import { refund } from './limits.ts'
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
  const isPlain = ({ finish, jobKey }: FinishedJob): boolean =>
    finish.outcome === 'succeeded' && !isOrdered(jobKey.split(':')[1] as string)
  const plain = indexed.filter(({ each }) => isPlain(each))
  for (const ofClaim of groupBy(plain, ({ each }) => each.fence).values()) {
    for (const group of groupBy(ofClaim, ({ each }) => `${each.standing}:${each.tenant}`).values()) {
      const jobs = group.flatMap(({ each, index }) => take(each, index) ?? [])
      for (const job of jobs) succeed(queue, job)
      if (jobs[0]) freeSlot(queue, queue.tenant(jobs[0].tenant))
    }
  }
  for (const { each, index } of indexed) {
    if (isPlain(each)) continue
    const job = take(each, index)
    if (job) finishOne(queue, job, each, givenBack)
  }
  queue.leases = queue.leases.filter(
    ({ jobs, fence, client: holder }) => jobs.length > 0 || holder !== client || !told.has(fence),
  )
  return stale
}

function finishOne(queue: QueueState, job: Job, { fence, finish }: FinishedJob, givenBack: Job[]): void {
  const tenant = queue.tenant(job.tenant)
  const { isCanceling } = job
  noLongerRuns(queue, tenant, job)
  const history: History = { ...(job.history ?? noHistory) }
  if (finish.outcome === 'succeeded') {
    succeed(queue, job)
    endInLane(queue, tenant, job)
    return
  }
  if (finish.outcome === 'dead') {
    if (isCanceling) {
      endCanceled(queue, tenant, job)
      return
    }
    job.history = { ...history, attempts: history.attempts + 1, reason: finish.reason, error: finish.error }
    bury(queue, job, finish.reason)
    endInLane(queue, tenant, job)
    return
  }
  // Neither was started: the permits go back.
  if (finish.outcome === 'returned' || finish.outcome === 'unknown') {
    refund(queue, tenant, job.standing, Number(fence), finish.outcome === 'returned')
    unpark(queue, tenant)
  }
  queue.count(finish.outcome === 'retry' ? 'retried' : finish.outcome === 'unknown' ? 'unknownType' : finish.outcome)
  if (isCanceling) {
    endCanceled(queue, tenant, job)
  } else if (finish.outcome === 'returned' || finish.outcome === 'released') {
    job.state = 'waiting'
    givenBack.push(job)
  } else {
    if (finish.outcome === 'retry') {
      history.attempts += 1
      history.reason = 'retry'
      history.error = finish.error
    } else if (finish.outcome === 'throttled') {
      history.throttles += 1
      history.reason = 'upstream'
    } else {
      if (history.unknownSince === 0) history.unknownSince = Math.floor(queue.now / 1000)
      history.reason = 'unknown-type'
    }
    job.history = history
    postpone(job, queue.now + Math.round(finish.delayMs * 1000))
  }
}

function succeed(queue: QueueState, job: Job): void {
  job.state = 'succeeded'
  job.fence = ''
  job.isCanceling = false
  queue.count('succeeded')
}

function groupBy<T>(list: readonly T[], key: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of list) groups.set(key(each), [...(groups.get(key(each)) ?? []), each])
  return groups
}
