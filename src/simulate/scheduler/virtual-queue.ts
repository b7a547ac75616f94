import { actionOfLane, defaultLane, type Level } from '../../store/names.ts'
import type { LimitRule, LimitScope, SettingValues } from '../../store/settings.ts'
import type { ScriptUnderWay } from './cell-rate.ts'
import { claimJobs } from './claim.ts'
import { NEVER, TURN } from './instants.ts'
import { Bucket, type Meter, Slots, Window } from './meters.ts'
import { BucketShare, WindowShare } from './share-meters.ts'
import { SortedLine } from './sorted-line.ts'
import type { VirtualJob, VirtualLane } from './virtual-tenant.ts'
import { VirtualTenant } from './virtual-tenant.ts'

/** What the scheduler goes by: the queue's settings as its scripts read them. */
export type SchedulerValues = Pick<SettingValues, 'strict' | 'quantum' | 'alpha' | 'max_progress' | 'max_wait'>

export type SchedulerLimits = Readonly<Record<Exclude<LimitScope, 'tenant'>, readonly LimitRule[]>>

export interface Ended {
  readonly job: VirtualJob
  /** It failed and is tried again so much later, in µs; undefined: it has ended. */
  readonly retryAfter: number | undefined
}

export interface Claimed {
  /** As in a claim's reply. */
  readonly word: 'claimed' | 'idle' | 'again'
  readonly jobs: readonly VirtualJob[]
  /** Until the next claim can bring anything, in µs; undefined: only an event can tell, or the hands are full. */
  readonly wait: number | undefined
  /** For others whose hands are free: there is more to claim now, or then, in µs of virtual time. */
  readonly leaves: 'now' | number
}

const DUE_AT_ONCE = 64

/**
 * Whose job runs next and whether it may, as the scripts of src/store decide it, in memory and told what time it is. It keeps
 * counts where they keep records, so that a million jobs take seconds. virtual-queue.test.ts runs both side by side: whoever
 * changes turns, limits or parking in the Lua changes them here.
 *
 * Left out is what a simulation has no use for: costs, quotas, ordered lanes, cancelling, pausing, stalls, and whatever is
 * changed while running.
 */
export class VirtualQueue {
  readonly values: SchedulerValues
  now = 0
  turnsTaken = 0
  waiting = 0
  running = 0
  readonly runningAt: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly virtual: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly weights: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  /** The place of the tenant that came into line last. */
  readonly entry: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  /** The clock when the round began, and how far the rounds have come: thousandths of a job of a tenant of weight 1. */
  readonly round: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly reached: Record<Level, number> = { high: 0, normal: 0, low: 0 }
  readonly ready: Readonly<Record<Level, SortedLine<VirtualTenant>>>
  readonly index: Readonly<Record<Level, SortedLine<VirtualTenant>>>
  readonly parked = new SortedLine<VirtualTenant>()
  readonly limits: Readonly<Record<Exclude<LimitScope, 'tenant'>, readonly Meter[]>>
  readonly script = { number: 0, active: 1 }
  /** Tenants that the script under way put in line. */
  entered: VirtualTenant[] = []
  clock = 0
  #touched: VirtualTenant[] = []
  #emptied: VirtualLane[] = []
  readonly #delayed = new SortedLine<VirtualJob>()
  #delayedCount = 0

  constructor(values: SchedulerValues, limits: SchedulerLimits) {
    this.values = values
    this.ready = perLevel(() => new SortedLine())
    this.index = perLevel(() => new SortedLine())
    const open = (scope: Level | 'queue') =>
      limits[scope].map((rule) =>
        openMeter(rule, this.script, () => (scope === 'queue' ? this.running : this.runningAt[scope])),
      )
    this.limits = { queue: open('queue'), high: open('high'), normal: open('normal'), low: open('low') }
  }

  /** @param rules - What its limits are, after the template. */
  addTenant(
    name: string,
    settings: { level: Level; weight: number; basePriority: number },
    rules: readonly LimitRule[],
  ): VirtualTenant {
    const tenant = new VirtualTenant(name, settings)
    for (const rule of rules) tenant.meters.push(openMeter(rule, this.script, () => tenant.running))
    if (this.values.strict !== 1) return tenant
    for (const meter of this.limits.queue) {
      if (meter instanceof Bucket) tenant.meters.push(new BucketShare(meter, this.script))
      else if (meter instanceof Window) tenant.meters.push(new WindowShare(meter, this.script))
    }
    return tenant
  }

  /** As submit-jobs, of fresh jobs of one lane. Answers whether there is work where there was none. */
  submit(tenant: VirtualTenant, laneName: string, count: number, now: number): boolean {
    this.now = now
    if (tenant.total > 0 && tenant.waiting + tenant.delayed + tenant.running === 0) tenant.total = 0
    tenant.total += count
    tenant.waiting += count
    this.waiting += count
    const lane = tenant.lane(laneName)
    if (lane.remaining === 0) tenant.turns.push(lane)
    lane.next = (lane.next ?? this.#tick()) + count
    lane.append(count, now)
    const wasInLine = tenant.isInLine
    this.touch(tenant)
    this.settle(tenant)
    this.#save()
    return !wasInLine && tenant.isInLine
  }

  /** As finish-and-claim: what has ended since the last, and the next jobs for so many hands. */
  claim(wanted: number, ended: readonly Ended[], now: number): Claimed {
    this.now = now
    this.entered = []
    const inLine = this.#inLine
    this.script.number += 1
    this.script.active = Math.max(1, inLine + this.parked.length)
    for (const each of ended) this.#end(each)
    const isEachDue = this.#fallDue()
    const claim = claimJobs(this, wanted, inLine)
    this.#save()
    const isBounded = claim.isBounded || !isEachDue
    const { jobs, left } = claim
    const word = jobs.length > 0 ? 'claimed' : left > 0 && isBounded ? 'again' : 'idle'
    const instant = claim.isClosed ? claim.waitUntil : this.#nextInstant(claim.waitUntil)
    const isMore = left === 0 && !claim.isClosed && this.#inLine > 0
    const leaves = isMore ? 'now' : instant
    if (left === 0) return { word, jobs, leaves, wait: undefined }
    if (word === 'claimed' && isBounded) return { word, jobs, leaves, wait: 0 }
    return { word, jobs, leaves, wait: instant < NEVER ? Math.max(0, instant - now) : undefined }
  }

  /** What the tenant was entitled to so far, in jobs. */
  entitledTo(tenant: VirtualTenant): number {
    const open = tenant.isInLine ? tenant.weight * (this.virtual[tenant.level] - tenant.virtual) : 0
    return (tenant.entitled + Math.floor(open)) / 1e6
  }

  get #inLine(): number {
    return this.ready.high.length + this.ready.normal.length + this.ready.low.length
  }

  #end({ job, retryAfter }: Ended): void {
    const { tenant } = job
    tenant.running -= 1
    this.running -= 1
    this.runningAt[tenant.level] -= 1
    // A slot is free: who waited for that, not for an instant, is back in line.
    if (tenant.parkedUntil === NEVER) this.unpark(tenant)
    if (retryAfter === undefined) return
    job.attempts += 1
    tenant.delayed += 1
    this.#delayedCount += 1
    this.#delayed.add({ score: this.now + retryAfter, name: String(this.#delayedCount).padStart(16, '0'), of: job })
  }

  /** Answers whether all that is due is back: so many come at once. */
  #fallDue(): boolean {
    let count = 0
    for (let first = this.#delayed.at(0); first && first.score <= this.now; first = this.#delayed.at(0)) {
      if (count === DUE_AT_ONCE) return false
      count += 1
      this.#delayed.remove(first)
      const { tenant, lane } = first.of
      if (lane.remaining === 0) tenant.turns.push(lane)
      lane.front.push(first.of)
      tenant.delayed -= 1
      tenant.waiting += 1
      this.waiting += 1
      this.touch(tenant)
      this.settle(tenant)
    }
    return count < DUE_AT_ONCE
  }

  /** When a claim can next bring anything. */
  #nextInstant(waitUntil: number): number {
    const parked = this.parked.at(this.parked.countUpTo(this.now))?.score ?? NEVER
    return Math.min(waitUntil, parked, this.#delayed.at(0)?.score ?? NEVER)
  }

  /** Never goes back, and never says the same twice. */
  #tick(step = 1): number {
    this.clock = Math.max(this.clock + step, this.now)
    return this.clock
  }

  newScore(tenant: VirtualTenant): number {
    const { alpha, max_progress: most } = this.values
    let progress = 0
    if (alpha !== 0) {
      const left = tenant.waiting + tenant.delayed + tenant.running
      progress = (alpha * 1000 * Math.max(0, tenant.total - left)) / Math.max(1, left)
      progress = Math.floor(Math.max(-most, Math.min(most, progress)))
    }
    return this.#tick(TURN) + tenant.basePriority * 1000 + progress
  }

  /** Of one with new work: right before the turn that began last, behind those that came before it. */
  #firstScore(tenant: VirtualTenant): number {
    if (this.values.alpha !== 0) return this.newScore(tenant)
    const { level, basePriority } = tenant
    this.entry[level] = this.weights[level] > 0 ? this.entry[level] + 1 : this.#tick()
    this.clock = Math.max(this.clock, this.entry[level])
    return this.entry[level] + basePriority * 1000
  }

  touch(tenant: VirtualTenant): void {
    if (tenant.isTouched) return
    tenant.isTouched = true
    this.#touched.push(tenant)
  }

  /** Puts a tenant that the script has met where it belongs: in line if it has work and may run. As standing.lua. */
  settle(tenant: VirtualTenant): void {
    if (tenant.parkedUntil === undefined && tenant.hasWork) {
      if (!tenant.isInLine) this.#enter(tenant)
      return
    }
    if (tenant.isInLine) this.#leave(tenant)
    if (!tenant.hasWork) {
      tenant.used = 0
      tenant.score = 0
    }
  }

  #enter(tenant: VirtualTenant): void {
    tenant.isInLine = true
    if (tenant.score === 0) {
      tenant.score = this.#firstScore(tenant)
      // Idling earns no credit.
      tenant.reached = Math.max(tenant.reached, this.reached[tenant.level])
    }
    tenant.since = this.now
    tenant.virtual = this.virtual[tenant.level]
    this.weights[tenant.level] += tenant.share
    this.entered.push(tenant)
  }

  #leave(tenant: VirtualTenant): void {
    const { level } = tenant
    tenant.isInLine = false
    tenant.since = this.now
    this.weights[level] = Math.max(0, this.weights[level] - tenant.share)
    tenant.entitled += Math.floor(tenant.weight * (this.virtual[level] - tenant.virtual))
    tenant.virtual = this.virtual[level]
  }

  park(tenant: VirtualTenant, until: number): void {
    tenant.used = 0
    tenant.parkedUntil = until
    this.settle(tenant)
  }

  unpark(tenant: VirtualTenant): void {
    if (tenant.parkedUntil === undefined) return
    tenant.parkedUntil = undefined
    this.touch(tenant)
    this.settle(tenant)
  }

  /** A lane has given its last job. The default lane and those of actions keep their numbers. */
  noteEmptied(lane: VirtualLane): void {
    if (lane.name !== defaultLane && actionOfLane(lane.name) === undefined) this.#emptied.push(lane)
  }

  /** A script reads the sets as they were when it began; what it changed is in them when it ends. */
  #save(): void {
    for (const tenant of this.#touched) this.#place(tenant)
    this.#touched = []
    // The numbers of a lane that is forgotten are never given again.
    for (const lane of this.#emptied) {
      if (lane.remaining > 0 || lane.next === undefined) continue
      this.clock = Math.max(this.clock, lane.next)
      lane.next = undefined
    }
    this.#emptied = []
  }

  #place(tenant: VirtualTenant): void {
    const ready = this.ready[tenant.level]
    const index = this.index[tenant.level]
    const wasReady = tenant.isReady
    if (wasReady && (!tenant.isInLine || tenant.score !== tenant.ready.score)) ready.remove(tenant.ready)
    if (tenant.isInLine && (!wasReady || tenant.score !== tenant.ready.score)) {
      tenant.ready.score = tenant.score
      ready.add(tenant.ready)
    }
    if (wasReady && (!tenant.isInLine || tenant.isCorrected)) index.remove(tenant.index)
    if (tenant.isInLine && (!wasReady || tenant.isCorrected)) {
      tenant.index.score = tenant.since
      index.add(tenant.index)
    }
    tenant.isReady = tenant.isInLine
    if (tenant.isParked) this.parked.remove(tenant.parking)
    tenant.isParked = tenant.parkedUntil !== undefined
    if (tenant.parkedUntil !== undefined) {
      tenant.parking.score = tenant.parkedUntil
      this.parked.add(tenant.parking)
    }
    tenant.isTouched = false
    tenant.isLookedAt = false
    tenant.isCorrected = false
  }
}

function openMeter(rule: LimitRule, script: ScriptUnderWay, running: () => number): Meter {
  switch (rule.kind) {
    case 'bucket':
      return new Bucket(rule, script)
    case 'window':
      return new Window(rule)
    case 'concurrency':
      return new Slots(rule, running)
    case 'quota':
      throw new TypeError('a quota is what an upstream says: it cannot be simulated')
  }
}

function perLevel<T>(make: () => T): Record<Level, T> {
  return { high: make(), normal: make(), low: make() }
}
