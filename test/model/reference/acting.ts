import { durationBucket } from '../../../src/store/durations.ts'
import { actionOfLane } from '../../../src/store/names.ts'
import type { FinishedInAction } from '../../../src/store/scripts/finish-and-claim.ts'
import type { ActionRules, ActionState, OpenedAction } from '../../../src/store/scripts/open-action.ts'
import { type Action, countsIn, doneIn, isClosed, isOver, marksIn, newAction } from './action.ts'
import { rankAll } from './congestion.ts'
import { keepMark } from './marks.ts'
import type { QueueState } from './queue-state.ts'
import { settle } from './standing.ts'
import type { Job } from './tenant.ts'

/** What happens to bulk actions, by hand and by their jobs. */

const DELISTED_AT_ONCE = 10
const NOTIFIED_EVERY = 100_000
const RATE_STEP = 5_000_000
const RESUMED_FOR = 500_000

export function openAction(
  queue: QueueState,
  opened: { tenant: string; name: string; rules: ActionRules; webhook: string; begunBy: string },
  now: number,
): OpenedAction {
  queue.begin(now)
  let action = queue.action(opened.tenant, opened.name)
  const isNew = action === undefined
  if (!action) {
    const createdAt = Math.max(queue.clock, now)
    queue.clock = Math.max(queue.clock, createdAt - 1)
    action = newAction({ ...opened, aggregates: queue.aggregated.has(opened.rules.type) }, createdAt)
    dropDuty(queue, `webhook:${action.tenant}:${action.name}`)
    delistForgotten(queue)
    queue.actions.push(action)
    queue.listed.set(`${action.tenant}:${action.name}`, createdAt)
    putOffSeal(queue, action)
    transition(queue, action, 'CREATED')
  }
  const { state, isSealed, received, rules, begunBy } = action
  return { isNew, state, isSealed, received, level: rules.level, lane: rules.lane, begunBy }
}

/** Of some in the list, those that are forgotten. */
function delistForgotten(queue: QueueState): void {
  const inOrder = [...queue.listed].sort(([a, madeA], [b, madeB]) => madeA - madeB || (a < b ? -1 : 1))
  const from = inOrder.length > DELISTED_AT_ONCE ? queue.clock % inOrder.length : 0
  for (const [id] of inOrder.slice(from, from + DELISTED_AT_ONCE)) {
    const [tenant = '', name = ''] = id.split(':')
    if (!queue.action(tenant, name)) queue.listed.delete(id)
  }
}

/** All that was kept of an ended action is past its time. Its jobs know it all the same. */
export function forgetAction(queue: QueueState, action: Action): void {
  queue.actions.splice(queue.actions.indexOf(action), 1)
  action.isForgotten = true
  const lanes = queue.tenants.find(({ name }) => name === action.tenant)?.lanes ?? []
  const lane = lanes.findIndex(({ token }) => token === action.rules.lane)
  if (lane >= 0) lanes.splice(lane, 1)
}

export function endAction(
  queue: QueueState,
  ended: { tenant: string; name: string; verb: 'seal' | 'cancel' },
  now: number,
): ActionState | undefined {
  queue.begin(now)
  const action = queue.action(ended.tenant, ended.name)
  if (!action) return undefined
  if (ended.verb === 'cancel' && !isOver(action)) {
    endEarly(queue, action, 'CANCELED')
  } else if (ended.verb === 'seal' && !isClosed(action)) {
    action.isSealed = true
    note(queue, action)
    dropDuty(queue, `seal:${action.tenant}:${action.name}`)
    if (action.state === 'CREATED') transition(queue, action, 'DISPATCHED')
    judge(queue)
  }
  queue.end()
  rankAll(queue)
  return action.state
}

/** Of one that nobody has sent anything to, nothing stays. */
export function takeBackAction(
  queue: QueueState,
  { tenant, name }: Pick<Action, 'tenant' | 'name'>,
  now: number,
): boolean {
  queue.begin(now)
  const action = queue.action(tenant, name)
  if (!action || action.received > 0 || isClosed(action)) return false
  queue.actions.splice(queue.actions.indexOf(action), 1)
  queue.listed.delete(`${tenant}:${name}`)
  dropDuty(queue, `seal:${tenant}:${name}`)
  queue.events.push(`type action.canceled tenant ${tenant} action ${name}`)
  return true
}

export function watchAction(
  queue: QueueState,
  watched: { tenant: string; name: string; client: string; forMs: number },
  now: number,
): boolean {
  const { watchers } = queue.action(watched.tenant, watched.name) ?? {}
  if (!watchers) return false
  for (const [client, until] of watchers) if (until <= now) watchers.delete(client)
  watchers.delete(watched.client)
  if (watched.forMs > 0) watchers.set(watched.client, now + watched.forMs * 1000)
  return true
}

/** The action whose lane this is now: there may have been another of that name. */
export function actionOfPlace(queue: QueueState, place: Pick<Job, 'tenant' | 'lane'>): Action | undefined {
  const name = actionOfLane(place.lane)
  return name === undefined ? undefined : queue.action(place.tenant, name)
}

/** It has changed in this script: it may be over, and those who follow it want to know. */
export function note(queue: QueueState, action: Action): void {
  meet(queue, action)
  queue.script.changed.add(action)
}

/** Actions are judged in the order in which a script comes upon them. */
export function meet(queue: QueueState, action: Action): void {
  queue.script.met.add(action)
}

export function transition(queue: QueueState, action: Action, state: ActionState): void {
  action.state = state
  queue.events.push(`type action.${state.toLowerCase()} tenant ${action.tenant} action ${action.name}`)
  if (state !== 'CREATED') note(queue, action)
  if (!isOver(action)) return
  action.endedAt = queue.now
  queue.script.over.add(action)
  if (action.webhook !== '') queue.duties.set(`webhook:${action.tenant}:${action.name}`, queue.now)
}

/** A producer was heard of. */
export function putOffSeal(queue: QueueState, { tenant, name, rules }: Action): void {
  if (rules.sealTimeoutMs > 0) queue.duties.set(`seal:${tenant}:${name}`, queue.now + rules.sealTimeoutMs * 1000)
}

export function dropDuty(queue: QueueState, duty: string): void {
  queue.duties.delete(duty)
  queue.dutyTries.delete(duty)
}

/** Jobs of it were claimed. */
export function startJobs(queue: QueueState, action: Action): void {
  note(queue, action)
  if (action.startedAt === 0) action.startedAt = queue.now
  if (action.state === 'CREATED' || action.state === 'DISPATCHED') transition(queue, action, 'RUNNING')
}

/** A job that ran has ended. */
export function endJob(queue: QueueState, job: Job, ended: Exclude<Job['ended'], undefined>): void {
  job.ended = ended
  const action = job.action
  if (!action) return
  note(queue, action)
  action.lastEndAt = queue.now
}

export function failJob(job: Job, message: string): void {
  const { action } = job
  if (!action) return
  const known = action.errors.get(message)
  if (known) known.count += 1
  else action.errors.set(message, { count: 1, example: job.key })
  action.letters.push(job.key)
}

export function measure(action: Action, { attempts, throttles, durationMs }: FinishedInAction): void {
  action.attempts += attempts
  action.throttles += throttles
  const bucket = durationBucket(durationMs)
  action.durations.set(bucket, (action.durations.get(bucket) ?? 0) + 1)
}

export function keepResult(action: Action, job: Job, { result }: FinishedInAction): void {
  if (!action.rules.keepResults || result === '') return
  if (!action.results.has(job.sequence)) action.finished.push(job.sequence)
  action.results.set(job.sequence, result)
}

/** Once all that ended or came back in a script is known. */
export function judge(queue: QueueState): void {
  for (const action of queue.script.met) {
    if (!queue.script.changed.has(action) || action.state === 'AGGREGATING' || isOver(action)) continue
    const { total, waiting, running, delayed, failed } = countsIn(queue, action)
    const { failFast, maxFailureRatio: ratio } = action.rules
    const isTooMany = ratio !== undefined && action.isSealed && failed > ratio * total
    if (failed > 0 && (failFast || isTooMany)) endEarly(queue, action, 'FAILED')
    else if (action.isSealed && waiting + running + delayed === 0) complete(queue, action)
  }
}

function complete(queue: QueueState, action: Action): void {
  if (marksIn(queue, action) > 0) dropLane(queue, action)
  transition(queue, action, 'AGGREGATING')
  if (action.aggregates) queue.duties.set(`aggregate:${action.tenant}:${action.name}`, queue.now)
  else transition(queue, action, 'COMPLETED')
}

/** What waits goes at once; what is delayed stays aside until it is due, and is counted no longer. */
function endEarly(queue: QueueState, action: Action, state: 'FAILED' | 'CANCELED'): void {
  const pending = queue.jobs.filter(
    (job) => job.action === action && (job.state === 'waiting' || job.state === 'delayed'),
  )
  for (const job of pending) {
    job.isLingering = job.state === 'delayed'
    if (job.state === 'waiting') job.at = 0
    job.state = 'canceled'
    job.ended = 'canceled'
  }
  queue.count('canceled', pending.length)
  dropLane(queue, action)
  for (const kind of ['aggregate', 'seal']) dropDuty(queue, `${kind}:${action.tenant}:${action.name}`)
  transition(queue, action, state)
}

function dropLane(queue: QueueState, action: Action): void {
  const tenant = queue.tenant(action.tenant)
  const lane = tenant.lane(action.rules.level, action.rules.lane)
  if (lane.list[0]) action.droppedFrom = Number(lane.list[0].sequence)
  const isNew = (job: Job): boolean => queue.script.broughtBack.has(job)
  // What came back in this very script was never stored in front of the lane.
  for (const job of lane.front.filter(isNew)) keepMark(queue, job)
  const stored = lane.front.filter((job) => !isNew(job))
  if (stored.length > 0) {
    const trash = String(queue.tick())
    queue.trash.set(trash, stored)
    queue.duties.set(`free:${trash}`, queue.now)
  }
  lane.front.length = 0
  lane.list.length = 0
  lane.busy = undefined
  // One that waits for its turn is found empty when it comes.
  if (tenant.turns[lane.level][0] === lane) tenant.turns[lane.level].shift()
  settle(queue, tenant)
}

/** At the end of a script: how fast its changed actions go, and who hears of it. */
export function closeActions(queue: QueueState): void {
  const { now } = queue
  for (const action of queue.script.changed) {
    const done = doneIn(queue, action)
    if (action.seen.at === 0) {
      action.seen = { at: now, done: 0 }
      action.before = { at: now, done: 0 }
    } else if (now - action.seen.at >= RATE_STEP) {
      const stoodStill = now - action.seen.at > 2 * RATE_STEP
      action.before = stoodStill ? { at: now - RESUMED_FOR, done: action.doneBefore } : action.seen
      action.seen = { at: now, done }
    }
    action.doneBefore = done
    const isDue = now - action.notifiedAt >= NOTIFIED_EVERY || queue.script.over.has(action)
    if (action.watchers.size > 0 && isDue) action.notifiedAt = now
  }
}
