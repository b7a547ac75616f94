import { CellRate, type Pace, type ScriptUnderWay } from './cell-rate.ts'
import type { Bucket, Meter, Window } from './meters.ts'

/** Strict shares, as src/store/lua/shares.lua: each tenant's part of a limit of the queue. */

const SECOND = 1_000_000
const FOR_EACH = 1_000

/** When a tenant that has used its part asks whether that has grown. */
const asksAgain = (now: number, active: number): number => now + Math.max(SECOND, active * FOR_EACH)

/** A bucket that is as many times slower as there are tenants, but grants one in each window. */
export class BucketShare implements Meter {
  readonly #whole: Bucket
  readonly #script: ScriptUnderWay
  readonly #cells: CellRate
  #openedFor = 0
  #pace: Pace

  constructor(whole: Bucket, script: ScriptUnderWay) {
    this.#whole = whole
    this.#script = script
    this.#cells = new CellRate(script)
    this.#pace = whole.pace
  }

  available(now: number): number {
    this.#open(now)
    return this.#cells.available(this.#pace, now)
  }

  instant(permits: number, now: number): number {
    this.#open(now)
    return Math.min(this.#cells.instant(this.#pace, permits), asksAgain(now, this.#script.active))
  }

  batch(): number {
    return Math.floor(this.#pace.burst / 2)
  }

  charge(permits: number, now: number): void {
    this.#open(now)
    this.#cells.charge(this.#pace, permits, now)
  }

  #open(now: number): void {
    const { active } = this.#script
    if (this.#openedFor !== active) {
      const { interval, reach, ...whole } = this.#whole.pace
      const perWindow = whole.count - whole.burst + 1
      const share = Math.max(1 / active, 1 / perWindow)
      const burst = Math.max(1, Math.floor(whole.burst / active))
      this.#openedFor = active
      this.#pace = {
        count: perWindow - 1 + burst,
        burst,
        interval: share < 1 ? Math.ceil(interval / share) : interval,
        reach,
      }
    }
    // Charged while it was slower, because more shared.
    this.#cells.quicken(this.#pace, now)
  }
}

/** A whole number of each window; what rounding leaves goes to whoever asks first, one to a tenant. */
export class WindowShare implements Meter {
  readonly #whole: Window
  readonly #script: ScriptUnderWay
  #used = 0
  #stop = 0

  constructor(whole: Window, script: ScriptUnderWay) {
    this.#whole = whole
    this.#script = script
  }

  available(now: number): number {
    if (this.#whole.available(now) === 0) return 0
    const used = this.#usedOf(now)
    return Math.max(0, this.#part + (this.#isExtraLeft(used) ? 1 : 0) - used)
  }

  instant(permits: number, now: number): number {
    if (this.#usedOf(now) === 0 || this.available(now) >= permits) return 0
    return Math.min(this.#stop, asksAgain(now, this.#script.active))
  }

  batch(): number {
    return 1
  }

  charge(permits: number, now: number): void {
    const had = this.#usedOf(now)
    this.#used += permits
    if (this.#used > this.#part && had <= this.#part && this.#whole.extra < this.#leftOver) this.#whole.extra += 1
  }

  get #part(): number {
    return Math.max(1, Math.floor(this.#whole.rule.count / this.#script.active))
  }

  get #leftOver(): number {
    return Math.max(0, this.#whole.rule.count - this.#script.active * this.#part)
  }

  #isExtraLeft(used: number): boolean {
    return used <= this.#part && this.#whole.extra < this.#leftOver
  }

  #usedOf(now: number): number {
    const stop = this.#whole.stop(now)
    if (stop !== this.#stop) {
      this.#stop = stop
      this.#used = 0
    }
    return this.#used
  }
}
