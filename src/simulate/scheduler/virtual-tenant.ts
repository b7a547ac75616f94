import type { Level } from '../../store/names.ts'
import type { Meter } from './meters.ts'
import type { Place } from './sorted-line.ts'

/** A job while it runs, or waits to be tried again. What waits for its first run is only counted. */
export interface VirtualJob {
  readonly tenant: VirtualTenant
  readonly lane: VirtualLane
  /** In µs. */
  readonly arrivedAt: number
  /** Runs that failed. */
  attempts: number
}

/** Jobs that came together: nothing tells them apart until they start, so that a flood costs no memory. */
interface Arrivals {
  readonly at: number
  left: number
}

/** A line of one tenant's jobs. */
export class VirtualLane {
  readonly name: string
  /** The number of its next job; undefined while it is not known. A lane that is forgotten starts anew. */
  next: number | undefined
  /** What came back, before what never left. */
  readonly front: VirtualJob[] = []
  readonly #list: Arrivals[] = []
  #first = 0
  #listed = 0

  constructor(name: string) {
    this.name = name
  }

  get remaining(): number {
    return this.front.length + this.#listed
  }

  /** Those that never left it, by when they came. */
  get untaken(): readonly Readonly<Arrivals>[] {
    return this.#list.slice(this.#first)
  }

  append(count: number, at: number): void {
    const last = this.#list[this.#list.length - 1]
    if (last && last.at === at && this.#listed > 0) last.left += count
    else this.#list.push({ at, left: count })
    this.#listed += count
  }

  /** Takes up to `count` of its jobs in order. */
  take(tenant: VirtualTenant, count: number, into: VirtualJob[]): number {
    let taken = 0
    while (taken < count && this.front.length > 0) {
      into.push(this.front.shift() as VirtualJob)
      taken += 1
    }
    while (taken < count && this.#listed > 0) {
      const arrivals = this.#list[this.#first] as Arrivals
      into.push({ tenant, lane: this, arrivedAt: arrivals.at, attempts: 0 })
      taken += 1
      this.#listed -= 1
      arrivals.left -= 1
      if (arrivals.left === 0) this.#dropFirst()
    }
    return taken
  }

  /** The array is cut now and then, not with every job: that would move all of it each time. */
  #dropFirst(): void {
    this.#first += 1
    if (this.#first * 2 < this.#list.length) return
    this.#list.splice(0, this.#first)
    this.#first = 0
  }
}

/** A tenant and how it stands. Its jobs are all of one level. */
export class VirtualTenant {
  /** Its token. */
  readonly name: string
  readonly level: Level
  readonly weight: number
  /** In ms. */
  readonly basePriority: number
  readonly meters: Meter[] = []
  readonly lanes = new Map<string, VirtualLane>()
  /** The lanes that have work and take turns, the current one first. */
  readonly turns: VirtualLane[] = []
  waiting = 0
  delayed = 0
  running = 0
  /** Submitted since it last had nothing to do. */
  total = 0

  isInLine = false
  /** 0 without work. */
  score = 0
  /** Of the turn under way: thousandths of a job. */
  used = 0
  /** How far in the rounds of its level it has been served: thousandths of a job of a tenant of weight 1. */
  reached = 0
  /** Since when it has been able to run, or out of line. */
  since = 0
  longestWait = 0
  /** The fairness audit: jobs, and millionths of them until it last entered the line, at which virtual time. */
  received = 0
  entitled = 0
  virtual = 0
  /** A limit said no until then. */
  parkedUntil: number | undefined

  /** In the ready set, in that of the overdue, and among the parked: as of the end of the last script. */
  readonly ready: Place<VirtualTenant>
  readonly index: Place<VirtualTenant>
  readonly parking: Place<VirtualTenant>
  isReady = false
  isParked = false
  /** In the script under way: met, looked at in line, and to be put right in the set of the overdue. */
  isTouched = false
  isLookedAt = false
  isCorrected = false

  constructor(name: string, settings: { level: Level; weight: number; basePriority: number }) {
    this.name = name
    this.level = settings.level
    this.weight = settings.weight
    this.basePriority = settings.basePriority
    this.ready = { score: 0, name, of: this }
    this.index = { score: 0, name, of: this }
    this.parking = { score: 0, name, of: this }
  }

  /** In thousandths. */
  get share(): number {
    return Math.floor(this.weight * 1000 + 0.5)
  }

  get hasWork(): boolean {
    return this.turns.length > 0
  }

  lane(name: string): VirtualLane {
    let lane = this.lanes.get(name)
    if (!lane) {
      lane = new VirtualLane(name)
      this.lanes.set(name, lane)
    }
    return lane
  }
}
