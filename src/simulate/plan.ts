import {
  boolean,
  checkOptions,
  group,
  integer,
  number,
  oneOf,
  optional,
  type Report,
  type Rule,
  type Settings,
  show,
  text,
} from '../assert.ts'
import { queueRules } from '../engine/queue-options.ts'
import type { LimitsOf, LimitsOption } from '../limits/attachment.ts'
import { type Level, levels, problemOfName } from '../store/names.ts'
import type { LimitRule } from '../store/settings.ts'
import { type Arrival, arrivalRule, type CheckedArrival, expectedJobs } from './arrivals.ts'
import { Jitters, limitsOfTenant, queueLimits, tenantLimits } from './plan-limits.ts'
import { listOf, oneOrMore, time, withDefault } from './plan-rules.ts'
import type { SchedulerLimits, SchedulerValues } from './scheduler/virtual-queue.ts'
import { constant, type Service, type ServiceTime, serviceRule } from './service-time.ts'

/**
 * What a simulation is given: who sends what when, through which limits, and who works. Times are text: `90ms`, `24h`.
 * docs/guides/simulate.md has the same as a table, and a test compares the two.
 */
export interface Plan {
  /** For editors; not read. */
  $schema?: string
  /** How much virtual time passes. */
  duration: string
  /**
   * Chance is the same for the same seed.
   * @default 1
   */
  seed?: number
  /**
   * The instant at which it begins: windows of limits and hours of the day go by it.
   * @default '2026-01-05T00:00:00Z', a Monday
   */
  start?: string
  /**
   * Go on after `duration`, when nothing more arrives, until all is done.
   * @default false
   */
  drain?: boolean
  workers?: {
    /** @default 1 */
    processes?: number
    /** Jobs that each of them runs at once. @default 10 */
    concurrency?: number
  }
  /** As the options of a queue. */
  queue?: {
    limits?: LimitsOption
    share?: 'fair' | 'strict'
    quantum?: number
    alpha?: number
    maxProgressMs?: number
    maxWaitMs?: number
    maxRetries?: number
    jobTimeoutMs?: number
  }
  /**
   * How long a job runs.
   * @default '100ms'
   */
  service?: ServiceTime
  tenants: readonly PlanTenant[]
}

export interface PlanTenant {
  /** With a `count`, its members are `<name>-1`, `<name>-2` and so on. */
  name: string
  /** So many tenants alike. @default 1 */
  count?: number
  /** @default 1 */
  weight?: number
  /** Of its jobs. @default 'normal' */
  level?: Level
  /** @default 0 */
  basePriority?: number
  /** Its own: the same name overrides the template of the queue, another stacks. */
  limits?: LimitsOf
  /** Instead of the plan's. */
  service?: ServiceTime
  /** The share of its runs that fail. @default 0 */
  failures?: number
  arrivals: Arrival | readonly Arrival[]
}

/** A plan that can be run. All times are in µs. */
export interface CheckedPlan {
  readonly durationUs: number
  readonly startUs: number
  readonly seed: number
  readonly drains: boolean
  readonly workers: { readonly processes: number; readonly concurrency: number }
  readonly values: SchedulerValues
  readonly limits: SchedulerLimits
  readonly maxRetries: number
  readonly jobTimeoutUs: number
  /** Tenants that are alike, in the order of the plan. */
  readonly groups: readonly TenantGroup[]
  /** About so many come. */
  readonly expectedJobs: number
}

export interface TenantGroup {
  readonly name: string
  readonly members: readonly string[]
  readonly weight: number
  readonly level: Level
  readonly basePriority: number
  /** All that each of them stands under beside the queue's and its level's. */
  readonly limits: readonly LimitRule[]
  readonly service: Service
  readonly failures: number
  readonly arrivals: readonly CheckedArrival[]
}

const MOST_TENANTS = 100_000
const DEFAULT_SERVICE_US = 100_000
const DEFAULT_START = Date.UTC(2026, 0, 5)

const startRule: Rule<number> = (value, path, report) => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  const isUsable = ms >= Date.UTC(2000, 0) && ms <= Date.UTC(2100, 0)
  if (!isUsable) report(path, `must be an instant such as "2026-01-05T00:00:00Z", not ${show(value)}`)
  return ms
}

/** The same of a tenant. */
export const tenantRules = {
  name: text({ maxLength: 200 }),
  count: optional(integer({ min: 1, max: MOST_TENANTS })),
  weight: number({ min: 0.01, max: 1_000, default: 1 }),
  level: oneOf(levels, { default: 'normal' }),
  basePriority: integer({ min: -1e12, max: 1e12, default: 0 }),
  limits: tenantLimits,
  service: optional(serviceRule),
  failures: number({ min: 0, max: 1, default: 0 }),
  arrivals: oneOrMore(arrivalRule),
}

/** What a plan may have, by name: a test compares the guide with it. */
export const planRules = {
  $schema: optional(text()),
  duration: time,
  seed: integer({ min: 0, default: 1 }),
  start: withDefault(startRule, DEFAULT_START),
  drain: boolean({ default: false }),
  workers: group({
    processes: integer({ min: 1, max: 1_000, default: 1 }),
    concurrency: integer({ min: 1, max: 100_000, default: 10 }),
  }),
  queue: group({
    limits: queueLimits,
    share: queueRules.share,
    quantum: queueRules.quantum,
    alpha: queueRules.alpha,
    maxProgressMs: queueRules.maxProgressMs,
    maxWaitMs: queueRules.maxWaitMs,
    maxRetries: queueRules.maxRetries,
    jobTimeoutMs: queueRules.jobTimeoutMs,
  }),
  service: withDefault(serviceRule, constant(DEFAULT_SERVICE_US)),
  tenants: listOf(group(tenantRules)),
}

type PlanSettings = Settings<typeof planRules>
type TenantSettings = Settings<typeof tenantRules>

/** Throws an InvalidOptionsError that names everything that is wrong with the plan, and where. */
export function checkPlan(input: unknown): CheckedPlan {
  const plan = checkOptions('plan', input, planRules, checkRelations)
  const { queue, workers } = plan
  const startUs = plan.start * 1000
  const groups = plan.tenants.map((tenant) => groupOf(tenant, plan))
  return {
    durationUs: plan.duration,
    startUs,
    seed: plan.seed,
    drains: plan.drain,
    workers,
    values: {
      strict: queue.share === 'strict' ? 1 : 0,
      quantum: queue.quantum,
      alpha: queue.alpha,
      max_progress: queue.maxProgressMs * 1000,
      max_wait: queue.maxWaitMs * 1000,
    },
    limits: queue.limits,
    maxRetries: queue.maxRetries,
    jobTimeoutUs: queue.jobTimeoutMs * 1000,
    groups,
    expectedJobs: expectedOf(groups, startUs, plan.duration),
  }
}

function checkRelations({ duration, tenants, queue }: PlanSettings, report: Report): void {
  if (duration === 0) report('duration', 'must be more than nothing')
  const jitters = new Jitters(queue.limits.tenant)
  const names = new Set<string>()
  let count = 0
  for (const [at, tenant] of tenants.entries()) {
    count += tenant.count ?? 1
    // Bounded before the names are made.
    if (count > MOST_TENANTS) {
      report('tenants', `must be at most ${MOST_TENANTS} in all`)
      return
    }
    const members = membersOf(tenant)
    const problem = problemOfName(members.at(-1))
    if (problem) report(`tenants[${at}].name`, problem)
    jitters.check(tenant.limits, (wrong) => report(`tenants[${at}].limits`, wrong))
    const twice = members.find((name) => names.has(name))
    if (twice !== undefined) report(`tenants[${at}].name`, `makes a second tenant ${show(twice)}; choose another`)
    for (const name of members) names.add(name)
  }
}

function membersOf({ name, count }: TenantSettings): readonly string[] {
  return count === undefined ? [name] : Array.from({ length: count }, (_, at) => `${name}-${at + 1}`)
}

function groupOf(tenant: TenantSettings, plan: PlanSettings): TenantGroup {
  const { limits: own, service, count, ...rest } = tenant
  const limits = limitsOfTenant(plan.queue.limits.tenant, own)
  return { ...rest, members: membersOf(tenant), limits, service: service ?? plan.service }
}

function expectedOf(groups: readonly TenantGroup[], startUs: number, durationUs: number): number {
  let jobs = 0
  for (const { arrivals, members } of groups) {
    for (const arrival of arrivals) jobs += members.length * expectedJobs(arrival, startUs, durationUs)
  }
  return Math.round(jobs)
}
