import { type Level, levels } from '../../../src/store/names.ts'
import type { QueueCounts } from '../../../src/store/scripts/read-counts.ts'
import type { LimitRow } from '../../../src/store/scripts/read-limits.ts'
import type { FoundTenant } from '../../../src/store/scripts/read-tenant.ts'
import type { LimitScope } from '../../../src/store/settings.ts'
import { NEVER, type PacedRule } from './bucket.ts'
import { limitsAt, limitsOf, openLimits } from './limits.ts'
import type { OpenLimit } from './open-limit.ts'
import { shareOf } from './pushback.ts'
import type { QueueState } from './queue-state.ts'
import { OpenQuota } from './quota.ts'
import { type Job, Tenant, textOf } from './tenant.ts'
import { OpenWindow } from './window.ts'

export interface JobAnswer {
  readonly state: Job['state'] | 'unknown'
  readonly due: number | undefined
  readonly reason: string
  readonly text: string | undefined
}

export function countsOf(queue: QueueState): QueueCounts {
  const at = (state: Job['state']): number => queue.jobs.filter((job) => job.state === state).length
  const counted = (name: string): number => queue.counted[name] ?? 0
  return {
    waiting: at('waiting'),
    delayed: at('delayed'),
    running: at('running'),
    submitted: counted('submitted'),
    claimed: counted('claimed'),
    succeeded: counted('succeeded'),
    failed: counted('failed'),
    canceled: counted('canceled'),
    retried: counted('retried'),
    throttled: counted('throttled'),
    stalled: counted('stalled'),
    returned: counted('returned'),
    released: counted('released'),
    unknownType: counted('unknownType'),
    parked: counted('parked'),
    unparked: counted('unparked'),
    promoted: counted('promoted'),
    deadLettersExpired: counted('deadLettersExpired'),
    deadLettersRetried: counted('deadLettersRetried'),
    deadLettersDiscarded: counted('deadLettersDiscarded'),
    ticks: counted('ticks'),
    ticksMissed: counted('ticksMissed'),
    audits: counted('audits'),
    differences: counted('differences'),
  }
}

/** One that ended is known while its id is, or, by its number, while its lane is. */
export function readJob(queue: QueueState, job: Job | undefined, now: number): JobAnswer {
  queue.now = now
  const unknown: JobAnswer = { state: 'unknown', due: undefined, reason: '', text: undefined }
  if (!job) return unknown
  const tenant = queue.tenants.find(({ name }) => name === job.tenant)
  const lane = tenant?.lanes.find(({ level, token }) => level === job.level && token === job.lane)
  const isNumbered = lane?.next !== undefined && !job.sequence.startsWith('0')
  const isKept = ['waiting', 'delayed', 'running'].includes(job.state) || isShown(queue, job)
  if (job.state === 'succeeded' && job.digest === '' && !isNumbered) return unknown
  const isInLane = lane?.front.includes(job) || lane?.list.includes(job)
  // Who forgets an action forgets how its jobs ended, as far as nothing else says.
  if (job.action?.isForgotten && job.state === 'succeeded') return unknown
  const isAside = job.isLingering || [...queue.trash.values()].some((jobs) => jobs.includes(job))
  if (job.action?.isForgotten && job.state === 'canceled' && job.at === 0 && !isAside) return unknown
  return {
    state: job.state,
    due: job.state === 'delayed' ? job.at : undefined,
    reason: job.state === 'failed' ? job.reason : '',
    text: isKept || (job.state === 'canceled' && (isInLane || isAside)) ? textOf(job) : undefined,
  }
}

/** Whether a job is a dead letter that is shown as a whole; by its own record of when it died, which is in ms. */
function isShown(queue: QueueState, { state, at }: Job): boolean {
  return state === 'failed' && Math.floor(at / 1000) * 1000 > queue.now - queue.values.keep_dead
}

/** Newest first, without those past their time. */
export function deadLetters(queue: QueueState, now: number): Job[] {
  return queue.jobs
    .filter(({ state, at }) => state === 'failed' && at > now - queue.values.keep_dead)
    .sort((a, b) => b.at - a.at || (a.key < b.key ? 1 : -1))
}

export function limitRows(queue: QueueState, name: string, now: number): { activeTenants: number; rows: LimitRow[] } {
  queue.begin(now)
  openLimits(queue)
  const rows: LimitRow[] = []
  for (const scope of ['queue', ...levels] as const) {
    for (const limit of limitsAt(queue, scope)) rows.push(limitRow(scope, limit, now))
  }
  const tenant = queue.tenants.find((each) => each.name === name) ?? new Tenant(name)
  if (name !== '')
    for (const limit of limitsOf(queue, tenant).filter(({ isShare }) => !isShare))
      rows.push(limitRow('tenant', limit, now))
  const standing = queue.tenants.flatMap(({ stands }) => levels.filter((level) => stands[level].present))
  const parked = queue.tenants.filter(({ parking }) => parking)
  return { activeTenants: standing.length + parked.length, rows }
}

export function readTenant(queue: QueueState, name: string): FoundTenant {
  const tenant = queue.tenants.find((each) => each.name === name) ?? new Tenant(name)
  const { parking, stands } = tenant
  const until = !parking || parking.isLifted ? undefined : parking.until
  const isInLine = levels.some((level) => tenant.turns[level].length > 0)
  const fairness = (level: Level): { entitled: number; received: number } => {
    const { present, virtual, entitled, received } = stands[level]
    const since = present ? queue.virtual[level] - virtual : 0
    return { entitled: (entitled + Math.floor(tenant.weight * since)) / 1e6, received }
  }
  return {
    state: tenant.pausedAt !== undefined ? 'paused' : parking ? 'parked' : isInLine ? 'ready' : 'idle',
    parkedBy: parking?.limit,
    parkedUntil: until === undefined ? undefined : until === NEVER ? Number.POSITIVE_INFINITY : until / 1000,
    weight: tenant.weight,
    basePriority: tenant.base,
    levelOverride: tenant.override,
    waiting: queue.jobsOf(name, 'waiting').length,
    delayed: queue.jobsOf(name, 'delayed').length,
    running: queue.jobsOf(name, 'running').length,
    longestWaitMs: Math.max(...levels.map((level) => stands[level].longestWait)) / 1000,
    fairness: { high: fairness('high'), normal: fairness('normal'), low: fairness('low') },
  }
}

function limitRow(scope: LimitScope, { rule, meter, pushed }: OpenLimit, now: number): LimitRow {
  const available = meter.available()
  const { used, unusedAt } = meter.usage()
  const opens = available > 0 ? 0 : meter.instant(1)
  return {
    scope,
    name: rule.name,
    kind: rule.kind,
    limit: meter instanceof OpenQuota ? meter.most : rule.kind === 'concurrency' ? rule.max : (rule as PacedRule).count,
    windowUs: 'window' in rule ? rule.window : 0,
    burst: 'burst' in rule ? rule.burst : 0,
    jitterUs: meter.jitter ?? 0,
    definedJitterUs: 'jitter' in rule ? rule.jitter : 0,
    available,
    used,
    opensInUs: opens >= NEVER ? -1 : Math.max(0, opens - now),
    fullInUs: Math.max(0, unusedAt - now),
    share: pushed ? Math.floor(shareOf(pushed, now) * 1000 + 0.5) : 1000,
    pushedForUs: Math.max(0, (pushed?.closedUntil ?? 0) - now),
    isEstimated: meter instanceof OpenWindow && meter.isEstimated,
  }
}
