import type { Bucket, Meter, Window } from './meters.ts'

/** Strict shares, as src/store/lua/shares.lua: each tenant's part of a limit of the queue. */

const SECOND = 1_000_000
const FOR_EACH = 1_000

/** How many tenants share, as of the beginning of the claim under way. */
export interface Sharers {
  readonly active: number
}

/** A bucket that is as many times slower as there are tenants, but grants one in each window. */
export class BucketShare implements Meter {
  readonly #whole: Bucket
  readonly #sharers: Sharers
  #tat = 0
  #openedFor = 0
  #burst = 0
  #count = 0
  #interval = 0

  constructor(whole: Bucket, sharers: Sharers) {
    this.#whole = whole
    this.#sharers = sharers
  }

  available(now: number): number {
    this.#open(now)
    return Math.max(0, Math.floor(this.#burst - (Math.max(this.#tat, now) - now) / this.#interval))
  }

  instant(permits: number, now: number): number {
    this.#open(now)
    const needed = Math.min(permits, this.#count)
    return Math.max(0, Math.ceil(this.#tat - (this.#burst - needed) * this.#interval))
  }

  batch(): number {
    return Math.floor(this.#burst / 2)
  }

  charge(permits: number, now: number): void {
    this.#open(now)
    this.#tat = Math.max(this.#tat, now) + permits * this.#interval
  }

  #open(now: number): void {
    const { active } = this.#sharers
    if (this.#openedFor !== active) {
      const { rule, interval } = this.#whole
      const perWindow = rule.count - rule.burst + 1
      const share = Math.max(1 / active, 1 / perWindow)
      this.#openedFor = active
      this.#burst = Math.max(1, Math.floor(rule.burst / active))
      this.#count = perWindow - 1 + this.#burst
      this.#interval = share < 1 ? Math.ceil(interval / share) : interval
    }
    // Charged while it was slower, because more shared: one permit is free now, the others come at the new pace.
    if (this.#tat > now + 2 * this.#burst * this.#interval) this.#tat = now + (this.#burst - 1) * this.#interval
  }
}

/** A whole number of each window; what rounding leaves goes to whoever asks first, one to a tenant. */
export class WindowShare implements Meter {
  readonly #whole: Window
  readonly #sharers: Sharers
  #used = 0
  #stop = 0

  constructor(whole: Window, sharers: Sharers) {
    this.#whole = whole
    this.#sharers = sharers
  }

  available(now: number): number {
    if (this.#whole.available(now) === 0) return 0
    const used = this.#usedOf(now)
    return Math.max(0, this.#part + (this.#isExtraLeft(used) ? 1 : 0) - used)
  }

  instant(permits: number, now: number): number {
    if (this.#usedOf(now) === 0 || this.available(now) >= permits) return 0
    return Math.min(this.#stop, now + Math.max(SECOND, this.#sharers.active * FOR_EACH))
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
    return Math.max(1, Math.floor(this.#whole.rule.count / this.#sharers.active))
  }

  get #leftOver(): number {
    return Math.max(0, this.#whole.rule.count - this.#sharers.active * this.#part)
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
