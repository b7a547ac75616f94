import type { ConcurrencyRule } from '../../../src/store/settings.ts'
import { NEVER } from './bucket.ts'
import type { Meter } from './meter.ts'

/** Jobs in flight at once: there is nothing to charge, they are counted. */
export class OpenSlots implements Meter {
  readonly jitter = undefined
  closedUntil = 0
  readonly #rule: ConcurrencyRule
  readonly #now: number
  readonly #running: () => number

  constructor(rule: ConcurrencyRule, now: number, running: () => number) {
    this.#rule = rule
    this.#now = now
    this.#running = running
  }

  available(): number {
    return this.closedUntil > this.#now ? 0 : Math.max(0, this.#rule.max - this.#running())
  }

  instant(): number {
    return this.#running() < this.#rule.max ? this.closedUntil : NEVER
  }

  charge(): undefined {}

  chargeAgain(): void {}

  furtherInstant(): number {
    return 0
  }

  refund(): void {}

  batch(): number {
    return 1
  }

  usage(): { used: number; unusedAt: number } {
    return { used: this.#running(), unusedAt: 0 }
  }

  text(): undefined {}
}
