import { NEVER } from './bucket.ts'
import type { QueueState } from './queue-state.ts'
import { settle, unpark } from './standing.ts'
import { isOrdered, type Job, type Tenant } from './tenant.ts'

/** How a job stops running, and where it goes then. */

const TRIMMED_AT_ONCE = 100

/** It is nowhere until the caller has put it somewhere. */
export function noLongerRuns(queue: QueueState, tenant: Tenant, job: Job): void {
  job.state = 'succeeded'
  job.fence = ''
  job.isCanceling = false
  freeSlot(queue, tenant)
}

/** A slot of a concurrency limit is free: whoever waits for no instant is back in line. */
export function freeSlot(queue: QueueState, tenant: Tenant): void {
  if (tenant.parking && !tenant.parking.isLifted && tenant.parking.until === NEVER) unpark(queue, tenant)
}

export function endInLane(queue: QueueState, tenant: Tenant, job: Job): void {
  if (!isOrdered(job.lane)) return
  const lane = tenant.lane(job.level, job.lane)
  if (lane.busy !== job) return
  lane.busy = undefined
  tenant.joinTurns(lane)
  settle(queue, tenant)
}

export function endCanceled(queue: QueueState, tenant: Tenant, job: Job): void {
  job.state = 'canceled'
  keepMark(queue, job)
  queue.count('canceled')
  endInLane(queue, tenant, job)
}

export function keepMark(queue: QueueState, job: Job): void {
  job.at = queue.now + queue.values.keep_ids
  queue.script.marksAdded += 1
}

export function bury(queue: QueueState, job: Job, reason: string): void {
  queue.script.lettersAdded += 1
  job.state = 'failed'
  job.at = queue.now
  job.reason = reason
  queue.count('failed')
}

export function postpone(job: Job, due: number): void {
  job.state = 'delayed'
  job.at = due
}

/** Whoever adds a dead letter, or a mark on a cancelled job, takes away what is past its time. */
export function trimOld(queue: QueueState): void {
  const past = (state: Job['state'], until: number): Job[] =>
    queue.jobs
      .filter((job) => job.state === state && job.at <= until)
      .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
      .slice(0, TRIMMED_AT_ONCE)
  if (queue.script.lettersAdded > 0) {
    const expired = past('failed', queue.now - queue.values.keep_dead)
    for (const job of expired) job.state = 'forgotten'
    queue.count('deadLettersExpired', expired.length)
  }
  if (queue.script.marksAdded > 0) for (const job of past('canceled', queue.now)) job.state = 'forgotten'
}
