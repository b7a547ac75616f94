import type { Level } from '../store/names.ts'
import type { LimitScope } from '../store/settings.ts'
import type { LimitUse } from './limit-use.ts'
import type { FloodRecord, GroupRecord, SimulationRecord, TenantRecord } from './simulation.ts'
import { WaitTimes } from './wait-times.ts'

/** What a simulation says, in numbers. Times are in ms; instants are counted from its start. */
export interface SimulationReport {
  /** How much virtual time passed. */
  readonly tookMs: number
  readonly seed: number
  readonly jobs: JobCounts
  readonly wait: WaitFigures
  /**
   * Jain's index over what each tenant received of what it was entitled to: 1 is fair, 1/n is all for one. Null where nobody
   * was entitled to anything.
   */
  readonly fairness: number | null
  readonly hands: { readonly count: number; readonly used: UseFigures }
  readonly limits: readonly LimitReport[]
  readonly floods: readonly FloodReport[]
  /** As the plan has them: those that are alike are one. */
  readonly groups: readonly GroupReport[]
  readonly tenants: readonly TenantReport[]
  /** Of everything that is over time: the instants of its values. */
  readonly timesMs: readonly number[]
}

interface JobCounts {
  readonly submitted: number
  readonly succeeded: number
  /** Dead letters. */
  readonly failed: number
  /** Runs that failed and were tried again. */
  readonly retried: number
  /** Not done at the end: waiting, delayed or running. */
  readonly left: number
}

/** From a job's arrival to its first start. */
export interface WaitFigures extends Readonly<Record<WaitName, number>> {
  /** Jobs that had not started at the end. They count with the time that they had waited by then. */
  readonly unstarted: number
  /** The figures that depend on such jobs: had it gone on, they would be higher. */
  readonly atLeast: readonly WaitName[]
}

export type WaitName = 'meanMs' | 'p50Ms' | 'p95Ms' | 'p99Ms' | 'maxMs'

interface UseFigures {
  /** From 0 to 1. */
  readonly average: number
  readonly peak: number
  readonly overTime: readonly number[]
}

export interface LimitReport {
  readonly name: string
  readonly scope: LimitScope
  readonly kind: string
  /** Whose it is; null: the queue's, or a level's. */
  readonly group: string | null
  /** Of a bucket the effective rate; null for slots. */
  readonly perSecond: number | null
  readonly used: UseFigures
}

export interface FloodReport {
  readonly tenant: string
  readonly jobs: number
  readonly atMs: number
  /** Null: not within the simulation. */
  readonly tookMs: number | null
  readonly left: number
}

interface GroupReport extends TenantFigures {
  readonly group: string
  readonly tenants: number
  /** Jobs waiting or delayed. */
  readonly backlog: readonly number[]
  /** The worst of its tenants. */
  readonly worst: { readonly tenant: string; readonly p99Ms: number }
}

export interface TenantReport extends TenantFigures {
  readonly tenant: string
  readonly group: string
}

export interface TenantFigures {
  readonly level: Level
  readonly weight: number
  readonly jobs: JobCounts
  readonly wait: WaitFigures
  /** From its first arrival to its last end; null while something is left, and without jobs. */
  readonly tookMs: number | null
  /** What it was given of all starts, and what it was entitled to of all entitlements: from 0 to 1. */
  readonly received: number
  readonly entitled: number
}

export function reportOf(record: SimulationRecord): SimulationReport {
  const all = record.groups.flatMap(({ tenants }) => tenants)
  const entitled = new Map(all.map((tenant) => [tenant, record.entitledTo(tenant)]))
  const totals: Totals = {
    received: sum(all, ({ virtual }) => virtual.received),
    entitled: sum(all, (tenant) => entitled.get(tenant) ?? 0),
    entitledTo: (tenant) => entitled.get(tenant) ?? 0,
  }
  const { plan, tookUs, periodUs, hands, limits } = record
  const endUs = plan.startUs + tookUs
  return {
    tookMs: tookUs / 1000,
    seed: plan.seed,
    jobs: countsOf(all),
    wait: waitsOf(all),
    fairness: jainIndex(all.map((tenant) => ratioOf(tenant, totals)).filter((ratio) => ratio !== undefined)),
    hands: { count: plan.workers.processes * plan.workers.concurrency, used: useOf(hands, endUs) },
    limits: limits.map((limit) => limitReport(limit, endUs)),
    floods: record.floods.map((flood) => floodReport(flood, plan.startUs)),
    groups: record.groups.map((group) => groupReport(group, totals)),
    tenants: record.groups.flatMap(({ group, tenants }) =>
      tenants.map((tenant) => ({ tenant: tenant.name, group: group.name, ...figuresOf([tenant], totals) })),
    ),
    timesMs: hands.values.map((_, at) => ((at + 1) * periodUs) / 1000),
  }
}

interface Totals {
  readonly received: number
  readonly entitled: number
  readonly entitledTo: (tenant: TenantRecord) => number
}

function figuresOf(tenants: readonly TenantRecord[], totals: Totals): TenantFigures {
  const [first] = tenants as [TenantRecord]
  return {
    level: first.group.level,
    weight: first.group.weight,
    jobs: countsOf(tenants),
    wait: waitsOf(tenants),
    tookMs: tookMsOf(tenants),
    received: shareOf(
      sum(tenants, ({ virtual }) => virtual.received),
      totals.received,
    ),
    entitled: shareOf(sum(tenants, totals.entitledTo), totals.entitled),
  }
}

function groupReport({ group, tenants, backlog }: GroupRecord, totals: Totals): GroupReport {
  const [worst] = tenants
    .map(({ name, waits }) => ({ tenant: name, p99Ms: waits.quantileMs(0.99) }))
    .sort((a, b) => b.p99Ms - a.p99Ms) as [GroupReport['worst']]
  return { group: group.name, tenants: tenants.length, ...figuresOf(tenants, totals), backlog: backlog.values, worst }
}

function countsOf(tenants: readonly TenantRecord[]): JobCounts {
  return {
    submitted: sum(tenants, ({ submitted }) => submitted),
    succeeded: sum(tenants, ({ succeeded }) => succeeded),
    failed: sum(tenants, ({ failed }) => failed),
    retried: sum(tenants, ({ retried }) => retried),
    left: sum(tenants, leftOf),
  }
}

function leftOf({ submitted, succeeded, failed }: TenantRecord): number {
  return submitted - succeeded - failed
}

const quantiles = { p50Ms: 0.5, p95Ms: 0.95, p99Ms: 0.99 } as const

function waitsOf(tenants: readonly TenantRecord[]): WaitFigures {
  const waits = new WaitTimes()
  for (const tenant of tenants) waits.addAll(tenant.waits)
  const { meanMs, maxMs, unstarted } = waits
  const names = Object.keys(quantiles) as (keyof typeof quantiles)[]
  const open = names.filter((name) => !waits.isFinal(quantiles[name]))
  return {
    meanMs,
    p50Ms: waits.quantileMs(quantiles.p50Ms),
    p95Ms: waits.quantileMs(quantiles.p95Ms),
    p99Ms: waits.quantileMs(quantiles.p99Ms),
    maxMs,
    unstarted,
    atLeast: unstarted > 0 ? ['meanMs', ...open, 'maxMs'] : [],
  }
}

function tookMsOf(tenants: readonly TenantRecord[]): number | null {
  if (tenants.some((tenant) => leftOf(tenant) > 0)) return null
  let first = Number.POSITIVE_INFINITY
  let last = 0
  for (const { firstArrivalAt, lastEndAt } of tenants) {
    first = Math.min(first, firstArrivalAt ?? first)
    last = Math.max(last, lastEndAt ?? last)
  }
  return first < last ? (last - first) / 1000 : null
}

function limitReport(limit: LimitUse, endUs: number): LimitReport {
  const { rule, scope, group, perSecond } = limit
  const { name, kind } = rule
  return { name, scope, kind, group: group ?? null, perSecond: perSecond ?? null, used: useOf(limit, endUs) }
}

function useOf(use: LimitUse, endUs: number): UseFigures {
  return { average: use.average(endUs), peak: use.peak(endUs), overTime: use.values }
}

function floodReport({ tenant, jobs, arrivedAt, endedAt, left }: FloodRecord, startUs: number): FloodReport {
  const tookMs = endedAt === undefined ? null : (endedAt - arrivedAt) / 1000
  return { tenant, jobs, atMs: (arrivedAt - startUs) / 1000, tookMs, left }
}

/** Less than a whole job is no entitlement that could be met. */
function ratioOf(tenant: TenantRecord, { entitledTo }: Totals): number | undefined {
  const entitled = entitledTo(tenant)
  return entitled >= 1 ? tenant.virtual.received / entitled : undefined
}

export function jainIndex(values: readonly number[]): number | null {
  const squares = sum(values, (value) => value ** 2)
  return squares === 0 ? null : sum(values, (value) => value) ** 2 / (values.length * squares)
}

function sum<T>(list: readonly T[], of: (each: T) => number): number {
  return list.reduce((total, each) => total + of(each), 0)
}

function shareOf(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
