import { setImmediate as nextTurn } from 'node:timers/promises'
import { retryDelayMs } from '../engine/retry.ts'
import { defaultLane, type Level, toActionLane, toToken } from '../store/names.ts'
import { type CheckedArrival, StreamClock } from './arrivals.ts'
import { EventQueue, type Happening } from './event-queue.ts'
import { LimitUse } from './limit-use.ts'
import type { CheckedPlan, TenantGroup } from './plan.ts'
import { Random } from './random.ts'
import { VirtualQueue } from './scheduler/virtual-queue.ts'
import type { VirtualJob, VirtualTenant } from './scheduler/virtual-tenant.ts'
import { type Column, column, TimeSeries } from './time-series.ts'
import { type Run, VirtualWorkers } from './virtual-workers.ts'
import { WaitTimes } from './wait-times.ts'

/** Jobs that came at once, and when the last of them had ended. */
export interface FloodRecord {
  readonly tenant: string
  readonly jobs: number
  readonly arrivedAt: number
  left: number
  endedAt: number | undefined
}

/** What became of one tenant. Instants are in µs of virtual time. */
export interface TenantRecord {
  readonly name: string
  readonly waits: WaitTimes
  submitted: number
  succeeded: number
  /** Dead letters. */
  failed: number
  retried: number
  firstArrivalAt: number | undefined
  lastEndAt: number | undefined
  readonly group: TenantGroup
  readonly virtual: VirtualTenant
  /** Of its group. */
  readonly backlog: Backlog
  /** Of all limits that it stands under, and of the hands. */
  readonly uses: readonly LimitUse[]
  readonly random: Random
  readonly floods: Map<string, FloodRecord>
}

/** Jobs of a group that wait, for their first run or for another: counted, for tenants are many and samples frequent. */
interface Backlog {
  jobs: number
}

/** What became of tenants that are alike. */
export interface GroupRecord {
  readonly group: TenantGroup
  readonly tenants: readonly TenantRecord[]
  /** Jobs that waited, over time. */
  readonly backlog: Column
}

export interface SimulationRecord {
  readonly plan: CheckedPlan
  readonly groups: readonly GroupRecord[]
  readonly floods: readonly FloodRecord[]
  readonly limits: readonly LimitUse[]
  readonly hands: LimitUse
  /** Between two values of what is over time. */
  readonly periodUs: number
  /** How much virtual time passed. */
  readonly tookUs: number
  readonly entitledTo: (tenant: TenantRecord) => number
}

export interface Watcher {
  /** Called now and then. */
  readonly onProgress?: (progress: { readonly passedUs: number; readonly ended: number }) => void
  readonly signal?: AbortSignal
}

const SAMPLES = 120
/** What happens between two looks at the rest of the process: some tens of milliseconds. */
const AT_ONCE = 20_000

/** Runs a plan on virtual time: the instant is that of what happens next, and nothing waits for real. */
export class Simulation {
  readonly #plan: CheckedPlan
  readonly #events = new EventQueue()
  readonly #queue: VirtualQueue
  readonly #workers: VirtualWorkers
  readonly #groups: GroupRecord[] = []
  readonly #records = new Map<VirtualTenant, TenantRecord>()
  readonly #floods: FloodRecord[] = []
  readonly #limits: LimitUse[] = []
  readonly #hands: LimitUse
  readonly #ofLevel: Readonly<Record<Level, LimitUse[]>> = { high: [], normal: [], low: [] }
  readonly #ofAll: LimitUse[] = []
  readonly #series: TimeSeries
  readonly #endUs: number
  #now: number
  /** Jobs that have come and not ended. */
  #open = 0
  #ended = 0
  #lastEndAt = 0
  #nextSampleAt = 0

  constructor(plan: CheckedPlan) {
    this.#plan = plan
    this.#now = plan.startUs
    this.#endUs = plan.startUs + plan.durationUs
    this.#queue = new VirtualQueue(plan.values, plan.limits)
    this.#workers = new VirtualWorkers(
      {
        queue: this.#queue,
        events: this.#events,
        now: () => this.#now,
        start: (job) => this.#onStart(job),
        end: (job, run) => this.#onEnd(job, run),
      },
      plan.workers,
    )
    const hands = plan.workers.processes * plan.workers.concurrency
    this.#hands = new LimitUse({
      scope: 'queue',
      rule: { kind: 'concurrency', name: 'hands', max: hands },
      startUs: plan.startUs,
    })
    this.#ofAll.push(this.#hands)
    this.#openLimits()
    for (const group of plan.groups) this.#addGroup(group)
    const now = () => this.#now
    const columns = [
      ...this.#groups.map(({ backlog }) => backlog),
      ...[this.#hands, ...this.#limits].map((use) => use.columnAt(now)),
    ]
    this.#series = new TimeSeries(columns, { periodUs: Math.ceil(plan.durationUs / SAMPLES), most: 2 * SAMPLES })
    this.#planSample()
  }

  async run({ onProgress, signal }: Watcher = {}): Promise<SimulationRecord> {
    for (;;) {
      for (let count = 0; count < AT_ONCE; count++) {
        const at = this.#events.nextAt
        if (at === undefined || this.#isOver(at)) return this.#end()
        this.#now = at
        this.#events.take().happen()
      }
      onProgress?.({ passedUs: this.#now - this.#plan.startUs, ended: this.#ended })
      await nextTurn()
      signal?.throwIfAborted()
    }
  }

  /** One that drains ends with its last job. */
  #isOver(at: number): boolean {
    return at >= this.#endUs && !(this.#plan.drains && this.#open > 0)
  }

  #end(): SimulationRecord {
    this.#now = this.#plan.drains ? Math.max(this.#endUs, this.#lastEndAt) : this.#endUs
    for (const tenant of this.#records.values()) this.#countUnstarted(tenant)
    if (this.#now >= this.#nextSampleAt) this.#series.record()
    return {
      plan: this.#plan,
      groups: this.#groups,
      floods: this.#floods,
      limits: this.#limits,
      hands: this.#hands,
      periodUs: this.#series.periodUs,
      tookUs: this.#now - this.#plan.startUs,
      entitledTo: ({ virtual }) => this.#queue.entitledTo(virtual),
    }
  }

  /** Whoever is never served would otherwise have waited for nothing. */
  #countUnstarted({ virtual, waits }: TenantRecord): void {
    for (const lane of virtual.lanes.values()) {
      for (const { at, left } of lane.untaken) waits.addUnstarted((this.#now - at) / 1000, left)
    }
  }

  #openLimits(): void {
    const { limits, startUs } = this.#plan
    for (const scope of ['queue', 'high', 'normal', 'low'] as const) {
      const uses = limits[scope].map((rule) => new LimitUse({ scope, rule, startUs }))
      this.#limits.push(...uses)
      if (scope === 'queue') this.#ofAll.push(...uses)
      else this.#ofLevel[scope].push(...uses)
    }
  }

  #addGroup(group: TenantGroup): void {
    const uses = group.limits.map((rule) => {
      const members = group.members.length
      return new LimitUse({ scope: 'tenant', rule, group: group.name, members, startUs: this.#plan.startUs })
    })
    this.#limits.push(...uses)
    const allUses = [...this.#ofAll, ...this.#ofLevel[group.level], ...uses]
    const backlog: Backlog = { jobs: 0 }
    const tenants = group.members.map((name) => this.#addTenant(name, group, { backlog, uses: allUses }))
    this.#groups.push({ group, tenants, backlog: column('level', () => backlog.jobs) })
    for (const tenant of tenants) {
      for (const [at, arrival] of group.arrivals.entries()) this.#planArrival(tenant, arrival, at)
    }
  }

  #addTenant(name: string, group: TenantGroup, shared: Pick<TenantRecord, 'backlog' | 'uses'>): TenantRecord {
    const virtual = this.#queue.addTenant(toToken(name), group, group.limits)
    const record: TenantRecord = {
      name,
      waits: new WaitTimes(),
      submitted: 0,
      succeeded: 0,
      failed: 0,
      retried: 0,
      firstArrivalAt: undefined,
      lastEndAt: undefined,
      group,
      virtual,
      ...shared,
      random: new Random(`${this.#plan.seed} ${name} runs`),
      floods: new Map(),
    }
    this.#records.set(virtual, record)
    return record
  }

  #planArrival(tenant: TenantRecord, arrival: CheckedArrival, index: number): void {
    if (arrival.kind === 'flood') this.#planFlood(tenant, arrival, this.#plan.startUs + arrival.at)
    else {
      const random = new Random(`${this.#plan.seed} ${tenant.name} arrivals ${index}`)
      const clock = new StreamClock(arrival, random, this.#plan.startUs, this.#endUs)
      this.#planNext(tenant, clock)
    }
  }

  #planFlood(tenant: TenantRecord, flood: CheckedArrival & { kind: 'flood' }, at: number): void {
    if (at >= this.#endUs) return
    this.#events.plan(at, {
      happen: () => {
        const { jobs, every } = flood
        const lane = toActionLane(`flood-${this.#floods.length + 1}`, false)
        const record = { tenant: tenant.name, jobs, arrivedAt: at, left: jobs, endedAt: undefined }
        this.#floods.push(record)
        tenant.floods.set(lane, record)
        this.#submit(tenant, lane, jobs)
        if (every !== undefined) this.#planFlood(tenant, flood, at + every)
      },
    })
  }

  #planNext(tenant: TenantRecord, clock: StreamClock): void {
    const at = clock.next()
    if (at === undefined) return
    this.#events.plan(at, new StreamArrival(this, tenant, clock))
  }

  arrive(tenant: TenantRecord, clock: StreamClock): void {
    this.#planNext(tenant, clock)
    this.#submit(tenant, defaultLane, 1)
  }

  #submit(tenant: TenantRecord, lane: string, jobs: number): void {
    tenant.submitted += jobs
    tenant.backlog.jobs += jobs
    this.#open += jobs
    tenant.firstArrivalAt ??= this.#now
    if (this.#queue.submit(tenant.virtual, lane, jobs, this.#now)) this.#workers.wake()
  }

  #onStart(job: VirtualJob): Run {
    const { tenant: virtual, attempts, arrivedAt } = job
    const tenant = this.#records.get(virtual) as TenantRecord
    if (attempts === 0) tenant.waits.add((this.#now - arrivedAt) / 1000)
    tenant.backlog.jobs -= 1
    for (const use of tenant.uses) use.starts(this.#now)
    return this.#drawRun(tenant, attempts)
  }

  #drawRun({ random, group }: TenantRecord, attempts: number): Run {
    const { service, failures } = group
    const { jobTimeoutUs, maxRetries } = this.#plan
    const drawn = service.draw(random)
    const durationUs = Math.min(drawn, jobTimeoutUs)
    const fails = drawn > jobTimeoutUs || (failures > 0 && random.next() < failures)
    if (!fails) return { durationUs, outcome: 'succeeded' }
    if (attempts >= maxRetries) return { durationUs, outcome: 'failed' }
    const retryAfterUs = Math.round(retryDelayMs(attempts, () => random.next()) * 1000)
    return { durationUs, outcome: 'retried', retryAfterUs }
  }

  #onEnd({ tenant: virtual, lane }: VirtualJob, { outcome }: Run): void {
    const tenant = this.#records.get(virtual) as TenantRecord
    for (const use of tenant.uses) use.ends(this.#now)
    tenant[outcome] += 1
    if (outcome === 'retried') {
      tenant.backlog.jobs += 1
      return
    }
    this.#open -= 1
    this.#ended += 1
    this.#lastEndAt = this.#now
    tenant.lastEndAt = this.#now
    const flood = tenant.floods.get(lane.name)
    if (!flood) return
    flood.left -= 1
    if (flood.left > 0) return
    flood.endedAt = this.#now
    tenant.floods.delete(lane.name)
    virtual.lanes.delete(lane.name)
  }

  #planSample(): void {
    this.#nextSampleAt = this.#now + this.#series.periodUs
    this.#events.plan(this.#nextSampleAt, {
      happen: () => {
        this.#series.record()
        this.#planSample()
      },
    })
  }
}

/** Made for every job: a class costs less than a function of its own. */
class StreamArrival implements Happening {
  readonly #simulation: Simulation
  readonly #tenant: TenantRecord
  readonly #clock: StreamClock

  constructor(simulation: Simulation, tenant: TenantRecord, clock: StreamClock) {
    this.#simulation = simulation
    this.#tenant = tenant
    this.#clock = clock
  }

  happen(): void {
    this.#simulation.arrive(this.#tenant, this.#clock)
  }
}
