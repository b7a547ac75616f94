import { type Level, levels } from '../../../src/store/names.ts'
import type { LimitRule, LimitScope } from '../../../src/store/settings.ts'
import { type BucketRule, type BucketState, type JitterState, judgeJitter, OpenBucket, openJitter } from './bucket.ts'
import type { OpenLimit } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import type { Job, Tenant } from './tenant.ts'

/** The limits a job stands under. All of them are charged, or none. */

const FRESH_SHARE = 0.6

export function noticeServer(queue: QueueState): void {
  if (queue.knownServer === queue.server) return
  queue.knownServer = queue.server
  queue.restarts = { count: queue.restarts.count + 1, lastAt: queue.now }
}

/** Queue and levels are opened when a script begins: what they learn in it counts from the next. */
export function openLimits(queue: QueueState): void {
  for (const scope of ['queue', ...levels] as const) limitsAt(queue, scope)
}

/** Concurrency first, as the scripts read them. */
export function limitsAt(queue: QueueState, scope: Exclude<LimitScope, 'tenant'>): OpenLimit[] {
  const opened = queue.limits[scope].map((rule) => {
    const field = `${scope}/${rule.name}`
    return openLimit(queue, scope, rule, field, queue.buckets, field)
  })
  return [...opened.filter(({ bucket }) => !bucket), ...opened.filter(({ bucket }) => bucket)]
}

export function limitsOf(queue: QueueState, tenant: Tenant): OpenLimit[] {
  const own = tenant.ownLimits
  const template = queue.limits.tenant.map((rule) => own.find(({ name }) => name === rule.name) ?? rule)
  const others = own.filter(({ name }) => !queue.limits.tenant.some((rule) => rule.name === name))
  return [...template, ...others]
    .filter((rule): rule is LimitRule => rule.kind !== 'none')
    .map((rule) => openLimit(queue, 'tenant', rule, `tenant:${tenant.name}/${rule.name}`, tenant.buckets, rule.name))
}

function openLimit(
  queue: QueueState,
  scope: LimitScope,
  rule: LimitRule,
  id: string,
  store: Map<string, BucketState>,
  field: string,
): OpenLimit {
  const found = queue.script.opened.get(id)
  if (found) return found
  const isOther = scope === 'tenant' && !queue.limits.tenant.some(({ name }) => name === rule.name)
  const countedAs = `${scope}/${isOther ? 'other' : rule.name}`
  let opened: OpenLimit
  if (rule.kind === 'concurrency') {
    const name = id.startsWith('tenant:') ? id.slice('tenant:'.length, id.lastIndexOf('/')) : undefined
    const isCounted = (job: Job): boolean =>
      job.state === 'running' &&
      (name === undefined || job.tenant === name) &&
      (scope === 'queue' || scope === 'tenant' || job.standing === scope)
    opened = { bucket: undefined, countedAs, rule, running: () => queue.jobs.filter(isCounted).length }
  } else {
    const jitter = jitterOf(queue, scope, rule).jitter
    const bucket = new OpenBucket(rule, store.get(field), jitter, queue.restarts, queue.now)
    const save = (): void => {
      store.set(field, { tat: bucket.tat, fence: bucket.fence, restarts: queue.restarts.count })
    }
    opened = { bucket, countedAs, scope, rule, save }
  }
  queue.script.opened.set(id, opened)
  return opened
}

function jitterOf(queue: QueueState, scope: LimitScope, rule: BucketRule): JitterState {
  const field = `${scope}/${rule.name}`
  let state = queue.script.openedJitters.get(field)
  if (!state) {
    state = openJitter(rule, queue.jitters.get(field), queue.now)
    queue.script.openedJitters.set(field, state)
  }
  return state
}

export function bucketsOver(
  queue: QueueState,
  tenant: Tenant,
  standing: Level,
): (OpenLimit & { bucket: OpenBucket })[] {
  return [...limitsAt(queue, 'queue'), ...limitsAt(queue, standing), ...limitsOf(queue, tenant)].filter(
    (limit): limit is OpenLimit & { bucket: OpenBucket } => limit.bucket !== undefined,
  )
}

export function start(queue: QueueState, tenant: Tenant, standing: Level, permits: number, fence: number): void {
  for (const { bucket, countedAs } of [
    ...limitsAt(queue, 'queue'),
    ...limitsAt(queue, standing),
    ...limitsOf(queue, tenant),
  ]) {
    if (!bucket) queue.count(`granted:${countedAs}`, permits)
  }
  charge(queue, tenant, standing, permits, fence)
}

export function charge(queue: QueueState, tenant: Tenant, standing: Level, permits: number, fence: number): void {
  for (const limit of bucketsOver(queue, tenant, standing)) {
    limit.bucket.charge(permits, fence)
    queue.count(`granted:${limit.countedAs}`, permits)
    limit.save()
    const jitter = jitterOf(queue, limit.scope, limit.rule)
    judgeJitter(jitter, limit.rule, queue.now)
    jitter.granted += permits
    queue.jitters.set(`${limit.scope}/${limit.rule.name}`, jitter)
  }
}

export function refund(queue: QueueState, tenant: Tenant, standing: Level, fence: number, isStale: boolean): void {
  for (const limit of bucketsOver(queue, tenant, standing)) {
    if (limit.bucket.refund(fence)) limit.save()
    if (!isStale) continue
    const jitter = jitterOf(queue, limit.scope, limit.rule)
    judgeJitter(jitter, limit.rule, queue.now)
    jitter.stale += 1
    queue.jitters.set(`${limit.scope}/${limit.rule.name}`, jitter)
  }
}

/** How long a grant keeps; undefined: for ever. */
export function freshMs(jitter: number | undefined): number | undefined {
  return jitter === undefined ? undefined : Math.floor(jitter * FRESH_SHARE) / 1000 || undefined
}

export function narrowestJitter(queue: QueueState, tenant: Tenant, standing: Level): number | undefined {
  const jitters = bucketsOver(queue, tenant, standing).map(({ bucket }) => bucket.jitter)
  return jitters.length > 0 ? Math.min(...jitters) : undefined
}
