import { actionOfLane } from '../../../src/store/names.ts'
import { endJob, failJob, note } from './acting.ts'
import { isOver } from './action.ts'
import { NEVER } from './bucket.ts'
import { limitsOf, release } from './limits.ts'
import { keepMark } from './marks.ts'
import { least } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import { settle, unpark } from './standing.ts'
import { isOrdered, type Job, type Tenant } from './tenant.ts'

/** How a job stops running, and where it goes then. */

const TRIMMED_AT_ONCE = 100

/** It is nowhere until the caller has put it somewhere. */
export function noLongerRuns(queue: QueueState, tenant: Tenant, job: Job): void {
  release(queue, tenant, job.standing, job)
  job.members.clear()
  job.state = 'succeeded'
  job.fence = ''
  job.isCanceling = false
  freeSlot(queue, tenant)
}

/** A slot is free, or a quota may have more: whoever waits for no instant is back in line, or for a quota that grants now. */
export function freeSlot(queue: QueueState, tenant: Tenant): void {
  const { parking } = tenant
  if (!parking || parking.isLifted) return
  const own = limitsOf(queue, tenant)
  const isForQuota = own.some(({ rule }) => rule.kind === 'quota' && rule.name === parking.limit)
  if (parking.until === NEVER || (isForQuota && least(own).permits > 0)) unpark(queue, tenant)
}

export function endInLane(queue: QueueState, tenant: Tenant, job: Job): void {
  if (!isOrdered(job.lane)) return
  const lane = tenant.lane(job.level, job.lane)
  if (lane.busy !== job) return
  lane.busy = undefined
  tenant.joinTurns(lane)
  settle(queue, tenant)
}

/** Cancelled by name, or with its action. */
export function endCanceled(queue: QueueState, tenant: Tenant, job: Job): void {
  job.state = 'canceled'
  endJob(queue, job, 'canceled')
  keepMark(queue, job)
  queue.count('canceled')
  endInLane(queue, tenant, job)
}

/** @param message - Of its error, where it has one. */
export function bury(queue: QueueState, job: Job, reason: string, message = reason): void {
  endJob(queue, job, 'failed')
  failJob(job, message)
  tellOfJob(queue, 'dead', job, reason)
  queue.script.lettersAdded += 1
  job.state = 'failed'
  job.at = queue.now
  job.reason = reason
  queue.count('failed')
}

export function postpone(queue: QueueState, job: Job, due: number): void {
  job.state = 'delayed'
  job.at = due
  noteAction(queue, job)
}

/** It waits again, in front of its lane. */
export function comeBack(queue: QueueState, job: Job): void {
  job.state = 'waiting'
  queue.tenant(job.tenant).hasGrown = true
  noteAction(queue, job)
}

function noteAction(queue: QueueState, job: Job): void {
  const action = job.action
  if (action) note(queue, action)
}

/** Its action has ended: it does not run again. */
export function isDropped({ action }: Job): boolean {
  return action !== undefined && isOver(action)
}

export function tellOfJob(queue: QueueState, what: 'dead' | 'failed' | 'stalled', job: Job, reason: string): void {
  const action = actionOfLane(job.lane)
  const place = `tenant ${job.tenant}${action === undefined ? '' : ` action ${action}`}`
  queue.events.push(`type job.${what} ${place} job ${job.key} reason ${reason}`)
}

/** Whoever adds a dead letter, or a mark on a cancelled job, takes away what is past its time. */
export function trimOld(queue: QueueState): void {
  const past = (state: Job['state'], until: number): Job[] =>
    queue.jobs
      .filter((job) => job.state === state && job.at <= until && job.at > 0 && !job.isLingering)
      .sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
      .slice(0, TRIMMED_AT_ONCE)
  if (queue.script.lettersAdded > 0) {
    const expired = past('failed', queue.now - queue.values.keep_dead)
    for (const job of expired) job.state = 'forgotten'
    queue.count('deadLettersExpired', expired.length)
  }
  if (queue.script.marksAdded > 0) for (const job of past('canceled', queue.now)) job.state = 'forgotten'
}
