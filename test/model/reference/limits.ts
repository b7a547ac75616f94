import { type Level, levels } from '../../../src/store/names.ts'
import type { LimitRule, LimitScope } from '../../../src/store/settings.ts'
import { type JitterState, jitterWithin, judgeJitter, OpenBucket, openJitter, type PacedRule } from './bucket.ts'
import type { Meter } from './meter.ts'
import { isHeld, type OpenLimit } from './open-limit.ts'
import { pushbackText, readPushback, shareOf } from './pushback.ts'
import type { QueueState } from './queue-state.ts'
import { OpenQuota } from './quota.ts'
import { activeTenants, BucketShare, WindowShare } from './shares.ts'
import { OpenSlots } from './slots.ts'
import type { Job, Tenant } from './tenant.ts'
import { OpenWindow } from './window.ts'

/** The limits a job stands under. All of them are charged, or none. */

const FRESH_SHARE = 0.6

export function noticeServer(queue: QueueState): void {
  if (queue.knownServer === queue.server) return
  queue.knownServer = queue.server
  queue.restarts = { ...queue.restarts, count: queue.restarts.count + 1, lastAt: queue.now }
}

/** A process comes back that knew the queue in a store that was emptied: limits close, unless they have since. */
export function comeBack(queue: QueueState, now: number): void {
  queue.begin(now)
  if (queue.restarts.count === 0) queue.restarts = { count: 1, lastAt: now, lostAt: now }
}

/** Queue and levels are opened when a script begins: what they learn in it counts from the next. */
export function openLimits(queue: QueueState): void {
  queue.script.active = activeTenants(queue)
  for (const scope of ['queue', ...levels] as const) limitsAt(queue, scope)
}

export function limitsAt(queue: QueueState, scope: Exclude<LimitScope, 'tenant'>): OpenLimit[] {
  return queue.limits[scope].map((rule) => {
    const id = `${scope}/${rule.name}`
    const field = fieldOf(id, rule)
    return openLimit(queue, scope, rule, { id, store: queue.meters, field, pushedField: `${id}/pushed` })
  })
}

/** What one kind counts says nothing to another. */
function fieldOf(name: string, { kind }: LimitRule): string {
  return kind === 'bucket' ? name : `${name}/${kind}`
}

export function limitsOf(queue: QueueState, tenant: Tenant): OpenLimit[] {
  const own = tenant.ownLimits
  const template = queue.limits.tenant.map((rule) => own.find(({ name }) => name === rule.name) ?? rule)
  const others = own.filter(({ name }) => !queue.limits.tenant.some((rule) => rule.name === name))
  const opened = [...template, ...others]
    .filter((rule): rule is LimitRule => rule.kind !== 'none')
    .map((rule) =>
      openLimit(queue, 'tenant', rule, {
        id: `tenant:${tenant.name}/${rule.name}`,
        store: tenant.meters,
        field: `${rule.kind}:${rule.name}`,
        pushedField: `pushed:${rule.name}`,
        tenant: tenant.name,
      }),
    )
  return queue.values.strict === 1 ? [...opened, ...sharesOf(queue, tenant)] : opened
}

/** The tenant's part of every limit of the queue that has a rate. */
function sharesOf(queue: QueueState, tenant: Tenant): OpenLimit[] {
  return limitsAt(queue, 'queue').flatMap((whole) => {
    const id = `share:${tenant.name}/${whole.rule.name}`
    const found = queue.script.opened.get(id)
    if (found) return [found]
    const field = fieldOf(`share:${whole.rule.name}`, whole.rule)
    const meter = openShare(queue, whole, tenant.meters.get(field))
    if (!meter) return []
    const opened: OpenLimit = {
      scope: 'tenant',
      countedAs: `queue/${whole.rule.name}`,
      rule: whole.rule,
      isShare: true,
      meter,
      pushed: undefined,
      save() {
        tenant.meters.set(field, meter.text())
      },
      savePushback() {},
    }
    queue.script.opened.set(id, opened)
    return [opened]
  })
}

function openShare(
  queue: QueueState,
  whole: OpenLimit,
  stored: string | undefined,
): OpenBucket | OpenWindow | undefined {
  const { restarts, now, script, hasCosts } = queue
  const context = { restarts, now, hasCosts }
  if (whole.meter instanceof OpenBucket) return new BucketShare(whole.meter, stored, script.active, context)
  if (!(whole.meter instanceof OpenWindow)) return undefined
  return new WindowShare(whole as OpenLimit & { meter: OpenWindow }, stored, script.active, context)
}

/** All that a job stands under, in the order in which a claim asks them. */
export function limitsOver(queue: QueueState, tenant: Tenant, standing: Level): OpenLimit[] {
  return [...limitsAt(queue, 'queue'), ...limitsAt(queue, standing), ...limitsOf(queue, tenant)]
}

interface Place {
  readonly id: string
  /** What lasts, by field. */
  readonly store: Map<string, string>
  readonly field: string
  readonly pushedField: string
  readonly tenant?: string
}

function openLimit(queue: QueueState, scope: LimitScope, rule: LimitRule, place: Place): OpenLimit {
  const found = queue.script.opened.get(place.id)
  if (found) return found
  const isOther = scope === 'tenant' && !queue.limits.tenant.some(({ name }) => name === rule.name)
  const pushedText = place.store.get(place.pushedField)
  const pushed = pushedText === undefined ? undefined : readPushback(pushedText)
  const meter = openMeter(queue, scope, rule, place, pushed ? shareOf(pushed, queue.now) : 1)
  if (pushed) meter.closedUntil = Math.max(meter.closedUntil, pushed.closedUntil)
  const opened: OpenLimit = {
    scope,
    countedAs: `${scope}/${isOther ? 'other' : rule.name}`,
    rule,
    isShare: false,
    meter,
    pushed,
    save() {
      const text = meter.text()
      if (text !== undefined) place.store.set(place.field, text)
    },
    savePushback() {
      if (this.pushed) place.store.set(place.pushedField, pushbackText(this.pushed))
    },
  }
  queue.script.opened.set(place.id, opened)
  return opened
}

function openMeter(queue: QueueState, scope: LimitScope, rule: LimitRule, place: Place, share: number): Meter {
  const { restarts, now, hasCosts } = queue
  const stored = place.store.get(place.field)
  if (rule.kind === 'concurrency') {
    const isCounted = (job: Job): boolean =>
      job.state === 'running' &&
      (place.tenant === undefined || job.tenant === place.tenant) &&
      (scope === 'queue' || scope === 'tenant' || job.standing === scope)
    return new OpenSlots(rule, now, () => queue.jobs.filter(isCounted).length)
  }
  if (rule.kind === 'quota') {
    const isAnyRunning = queue.script.ran.some(
      (job) => scope === 'queue' || job.standing === scope || job.tenant === place.tenant,
    )
    return new OpenQuota(rule, stored, { jitter: 0, restarts, now, share, hasCosts }, isAnyRunning)
  }
  const jitter = jitterWithin(rule, jitterOf(queue, scope, rule).began)
  const context = { jitter, restarts, now, share, hasCosts }
  return rule.kind === 'window' ? new OpenWindow(rule, stored, context) : new OpenBucket(rule, stored, context)
}

function jitterOf(queue: QueueState, scope: LimitScope, rule: PacedRule): JitterState {
  const field = `${scope}/${rule.name}`
  let state = queue.script.openedJitters.get(field)
  if (!state) {
    const ofTemplate = scope === 'tenant' ? queue.limits.tenant.find(({ name }) => name === rule.name) : undefined
    const first = ofTemplate?.kind === 'bucket' || ofTemplate?.kind === 'window' ? ofTemplate : rule
    state = openJitter(first, queue.jitters.get(field), queue.now)
    queue.script.openedJitters.set(field, state)
  }
  return state
}

/** Of a limit that has any: judged, then counted. */
function noteJitter(queue: QueueState, { scope, rule, isShare }: OpenLimit, count: (state: JitterState) => void): void {
  if (isShare) return
  if (rule.kind !== 'bucket' && rule.kind !== 'window') return
  const state = jitterOf(queue, scope, rule)
  judgeJitter(state, queue.now)
  count(state)
  queue.jitters.set(`${scope}/${rule.name}`, state)
}

/** @param taken - The jobs that start: of a pool each has its own member. */
export function charge(
  queue: QueueState,
  tenant: Tenant,
  standing: Level,
  { taken, permits, fence }: { taken: readonly Job[]; permits: number; fence: number },
): void {
  for (const limit of limitsOver(queue, tenant, standing)) {
    if (!limit.isShare) queue.count(`granted:${limit.countedAs}`, permits)
    if (limit.rule.kind === 'quota' && limit.rule.members) {
      for (const job of taken) job.members.set(limit.rule.name, limit.meter.charge(job.cost, fence) ?? '')
    } else limit.meter.charge(permits, fence)
    limit.save()
    noteJitter(queue, limit, (state) => {
      state.granted += permits
    })
  }
}

/** A further call of a job that runs: it has its slots. */
export function chargeAgain(queue: QueueState, tenant: Tenant, standing: Level, job: Job, fence: number): void {
  for (const limit of limitsOver(queue, tenant, standing)) {
    if (isHeld(limit)) continue
    if (!limit.isShare) queue.count(`granted:${limit.countedAs}`, job.cost)
    const before = limit.meter.text()
    limit.meter.chargeAgain(job.cost, fence, job.members.get(limit.rule.name))
    if (limit.meter.text() !== before) limit.save()
    noteJitter(queue, limit, (state) => {
      state.granted += job.cost
    })
  }
}

/** Jobs that run no longer are in flight no longer. */
export function release(queue: QueueState, tenant: Tenant, standing: Level, job: Job): void {
  for (const limit of limitsOver(queue, tenant, standing)) {
    if (!(limit.meter instanceof OpenQuota)) continue
    const before = limit.meter.text()
    limit.meter.release(job.cost, job.members.get(limit.rule.name))
    if (limit.meter.text() !== before) limit.save()
  }
}

export function refund(
  queue: QueueState,
  tenant: Tenant,
  job: Job,
  { members, fence, isStale }: { members: ReadonlyMap<string, string>; fence: number; isStale: boolean },
): void {
  for (const limit of limitsOver(queue, tenant, job.standing)) {
    const before = limit.meter.text()
    limit.meter.refund(job.cost, fence, members.get(limit.rule.name))
    if (limit.meter.text() !== before) limit.save()
    if (!isStale) continue
    noteJitter(queue, limit, (state) => {
      state.stale += job.cost
    })
  }
}

/** As a reply says it. */
export function freshMs(keepsUs: number | undefined): number | undefined {
  return keepsUs === undefined ? undefined : keepsUs / 1000 || undefined
}

/** For how long what was just granted keeps, in µs; undefined: for ever. */
export function shortestKept(queue: QueueState, tenant: Tenant, standing: Level): number | undefined {
  const kept = limitsOver(queue, tenant, standing).flatMap(({ meter }) =>
    meter.jitter === undefined ? [] : Math.floor(meter.jitter * FRESH_SHARE) - (meter.late?.() ?? 0),
  )
  return kept.length > 0 ? Math.min(...kept) : undefined
}
