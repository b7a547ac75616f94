import type { BucketRule, ConcurrencyRule, WindowRule } from '../../store/settings.ts'
import { CellRate, type Pace, type ScriptUnderWay } from './cell-rate.ts'
import { NEVER } from './instants.ts'
import { windowBounds } from './window-bounds.ts'

/** Of the jitter: how late a permit can be granted. As in src/store/lua/bucket.lua. */
const REACH = 0.05

/** What a limit counts. All times are in µs. The modules of src/store/lua of the same names say why. */
export interface Meter {
  /** Permits that could be granted now. */
  available(now: number): number
  /** When so many could be granted at once. */
  instant(permits: number, now: number): number
  /** How many are worth waiting for. */
  batch(): number
  charge(permits: number, now: number): void
}

/** As src/store/lua/bucket.lua, without what only restarts, costs and upstreams that push back need. */
export class Bucket implements Meter {
  readonly rule: BucketRule
  readonly pace: Pace
  readonly #cells: CellRate

  constructor(rule: BucketRule, script: ScriptUnderWay) {
    this.rule = rule
    const { count, burst, jitter } = rule
    this.pace = { count, burst, interval: bucketInterval(rule), reach: Math.floor(jitter * REACH) }
    this.#cells = new CellRate(script)
  }

  available(now: number): number {
    return this.#cells.available(this.pace, now)
  }

  instant(permits: number): number {
    return this.#cells.instant(this.pace, permits)
  }

  batch(): number {
    return Math.floor(this.rule.burst / 2)
  }

  charge(permits: number, now: number): void {
    this.#cells.charge(this.pace, permits, now)
  }
}

/** Between two permits. */
export function bucketInterval({ window, jitter, count, burst }: BucketRule): number {
  return Math.ceil((window + jitter) / (count - burst + 1))
}

/** As src/store/lua/window.lua. */
export class Window implements Meter {
  readonly rule: WindowRule
  /** How many tenants got one more than their strict share. */
  extra = 0
  #start = 0
  #stop = 0
  #used = 0

  constructor(rule: WindowRule) {
    this.rule = rule
  }

  /** When the window of now ends. */
  stop(now: number): number {
    this.#roll(now)
    return this.#stop
  }

  used(now: number): number {
    this.#roll(now)
    return this.#used
  }

  available(now: number): number {
    this.#roll(now)
    return now >= this.#stop - this.rule.jitter ? 0 : Math.max(0, this.rule.count - this.#used)
  }

  instant(permits: number, now: number): number {
    this.#roll(now)
    const needed = Math.min(permits, this.rule.count)
    return now < this.#stop - this.rule.jitter && this.rule.count - this.#used >= needed ? 0 : this.#stop
  }

  batch(): number {
    return 1
  }

  charge(permits: number, now: number): void {
    this.#roll(now)
    this.#used += permits
  }

  #roll(now: number): void {
    if (now < this.#stop && now >= this.#start) return
    const { start, stop } = windowBounds(this.rule, now)
    this.#start = start
    this.#stop = stop
    this.#used = 0
    this.extra = 0
  }
}

/** As src/store/lua/slots.lua: the slots are the jobs that run. */
export class Slots implements Meter {
  readonly rule: ConcurrencyRule
  readonly #running: () => number

  constructor(rule: ConcurrencyRule, running: () => number) {
    this.rule = rule
    this.#running = running
  }

  get used(): number {
    return this.#running()
  }

  available(): number {
    return Math.max(0, this.rule.max - this.#running())
  }

  instant(): number {
    return this.#running() < this.rule.max ? 0 : NEVER
  }

  batch(): number {
    return 1
  }

  charge(): void {}
}

/** The least that all of them can grant. */
export function available(meters: readonly Meter[], now: number): number {
  let permits = Number.POSITIVE_INFINITY
  for (const meter of meters) {
    const free = meter.available(now)
    if (free < permits) permits = free
  }
  return permits
}

/** Where they can grant nothing: the latest instant that one of those names that lacks something. */
export function closedUntil(meters: readonly Meter[], now: number): number {
  let until = 0
  for (const meter of meters) if (meter.available(now) === 0) until = Math.max(until, meter.instant(1, now))
  return until
}

/** When a batch worth asking for can be granted by all of them. */
export function batchInstant(meters: readonly Meter[], wanted: number, now: number): number {
  let latest = 0
  for (const meter of meters) {
    latest = Math.max(latest, meter.instant(Math.max(1, Math.min(wanted, meter.batch())), now))
  }
  return latest
}
