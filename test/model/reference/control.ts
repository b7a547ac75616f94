import { isDeepStrictEqual } from 'node:util'
import { defaultLane, type Level } from '../../../src/store/names.ts'
import type { CancelReply } from '../../../src/store/scripts/cancel-job.ts'
import type { TenantPatch } from '../../../src/store/scripts/change-tenant.ts'
import type {
  Declaration,
  DeclaredSettings,
  LimitChange,
  LimitScope,
  SettingsPatch,
} from '../../../src/store/settings.ts'
import { judge, note } from './acting.ts'
import { isOver } from './action.ts'
import { NEVER } from './bucket.ts'
import { compileLimits } from './compiled-limits.ts'
import { rankAll } from './congestion.ts'
import type { QueueState } from './queue-state.ts'
import { readJob } from './reading.ts'
import { liftedTenants } from './recovery.ts'
import { rebase, reweigh, settle, unpark } from './standing.ts'
import { type Job, noHistory, type Tenant } from './tenant.ts'

/** What operators do. */

export function cancelJob(queue: QueueState, job: Job | undefined, now: number): CancelReply {
  queue.begin(now)
  const { state } = readJob(queue, job, now)
  if (!job || state === 'unknown') return 'unknown'
  if (state === 'canceled') return 'canceled'
  if (state === 'running') {
    job.isCanceling = true
    return 'canceling'
  }
  if (state !== 'waiting' && state !== 'delayed') return 'ended'
  const tenant = queue.tenant(job.tenant)
  const wasDelayed = job.state === 'delayed'
  job.state = 'canceled'
  job.ended = 'canceled'
  const action = job.action
  // One that waits is met by a claim; until then its mark is for ever. An action has the marks of its jobs.
  job.at = wasDelayed ? now + queue.values.keep_ids : action ? 0 : NEVER
  if (action) {
    if (!wasDelayed) action.marked.push(job.sequence)
    note(queue, action)
    judge(queue)
  }
  const lane = tenant.lane(job.level, job.lane)
  if (wasDelayed && lane.busy === job) {
    lane.busy = undefined
    tenant.joinTurns(lane)
    settle(queue, tenant)
  }
  queue.count('canceled')
  queue.end()
  rankAll(queue)
  return 'canceled'
}

/** All that are parked are on their way back into line; who was on it before is there. */
function lift(queue: QueueState): void {
  for (const tenant of liftedTenants(queue)) unpark(queue, tenant)
  for (const { parking } of queue.tenants) if (parking) parking.isLifted = true
}

/** As a deploy does: another declaration under what operators have changed. What it does not give stays. */
export function declareSettings(queue: QueueState, declaration: Declaration, now: number): void {
  queue.begin(now)
  const isGiven = (name: string) => Object.hasOwn(declaration.given, name)
  const given = Object.fromEntries(Object.entries(declaration.values).filter(([name]) => isGiven(name)))
  const declared: DeclaredSettings = {
    values: { ...queue.declared.values, ...given },
    limits: declaration.limits ?? queue.declared.limits,
  }
  const values = { ...declared.values, ...queue.changedValues }
  const limits = compileLimits(declared.limits, queue.changedLimits)
  if (!isDeepStrictEqual(limits, queue.limits) || values.strict !== queue.values.strict) {
    lift(queue)
    queue.events.push('type limits.changed')
  }
  Object.assign(queue, { declared, values, limits })
}

export function changeSettings(queue: QueueState, patch: SettingsPatch, now: number): void {
  queue.begin(now)
  lift(queue)
  queue.changedValues = { ...queue.changedValues, ...patch.values }
  queue.values = { ...queue.values, ...patch.values }
  if (patch.limits) queue.events.push('type limits.changed')
  for (const [scope, changes] of Object.entries(patch.limits ?? {}) as [LimitScope, Record<string, LimitChange>][]) {
    const changed = queue.changedLimits[scope] ?? {}
    queue.changedLimits[scope] = changed
    for (const [name, change] of Object.entries(changes)) {
      if (change.kind === 'declared') delete changed[name]
      else changed[name] = change
    }
  }
  queue.limits = compileLimits(queue.declared.limits, queue.changedLimits)
}

export function changeTenant(queue: QueueState, name: string, patch: TenantPatch, now: number): void {
  queue.begin(now)
  const tenant = queue.tenant(name)
  if (patch.weight !== undefined) reweigh(queue, tenant, patch.weight)
  if (patch.base !== undefined) rebase(tenant, patch.base)
  if (patch.level !== undefined) tenant.override = patch.level === '' ? undefined : (patch.level as Level)
  if (patch.limits) {
    const changes = patch.limits
    tenant.ownLimits = [
      ...tenant.ownLimits.filter((rule) => !changes[rule.name]),
      ...Object.values(changes).filter((rule) => rule.kind !== 'declared'),
    ].sort((a, b) => (a.name < b.name ? -1 : 1)) as Tenant['ownLimits']
    queue.events.push(`type limits.changed tenant ${name}`)
  }
  if (patch.paused === true) tenant.pausedAt ??= now
  if (patch.paused === false) tenant.pausedAt = undefined
  if (patch.limits || patch.paused !== undefined) unpark(queue, tenant)
  settle(queue, tenant)
  queue.end()
}

export function pauseQueue(queue: QueueState, level: Level | undefined, isPaused: boolean, now: number): void {
  queue.begin(now)
  const what = level ?? 'queue'
  if (isPaused) {
    if (queue.paused[what] === 0) queue.paused[what] = now
  } else if (queue.paused[what] > 0) {
    queue.paused[what] = 0
    queue.resumed[what] = now
  }
}

export function takeDeadLetter(
  queue: QueueState,
  job: Job,
  retries: boolean,
  now: number,
): 'retried' | 'discarded' | 'unknown' {
  queue.begin(now)
  if (job.state !== 'failed' || job.at <= now - queue.values.keep_dead) return 'unknown'
  if (retries) {
    const action = job.action
    const isByItself = action && (isOver(action) || action.state === 'AGGREGATING')
    const revived = isByItself ? copyOutside(queue, job) : job
    revived.state = 'delayed'
    revived.at = now
    revived.history = { ...noHistory, reason: 'retry' }
    if (action && !isByItself) {
      job.ended = undefined
      note(queue, action)
    }
    queue.tenant(job.tenant).total += 1
    queue.count('deadLettersRetried')
    queue.end()
    return 'retried'
  }
  job.state = 'canceled'
  job.at = now + queue.values.keep_ids
  queue.count('deadLettersDiscarded')
  return 'discarded'
}

/** An action that has ended stays as it ended: a dead letter of it runs again outside of it, under another key. */
function copyOutside(queue: QueueState, job: Job): Job {
  const sequence = `0${queue.tick()}`
  const lane = defaultLane
  const copy = {
    ...job,
    key: `${job.level}:${lane}:${sequence}:${job.tenant}`,
    lane,
    sequence,
    digest: '',
    ended: undefined,
    action: undefined,
  }
  queue.jobs.push(copy)
  job.state = 'canceled'
  job.at = queue.now + queue.values.keep_ids
  return copy
}
