import { levels } from '../../../src/store/names.ts'
import type { BucketRule, WindowRule } from '../../../src/store/settings.ts'
import { OpenBucket } from './bucket.ts'
import type { MeterContext } from './meter.ts'
import type { OpenLimit } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import { OpenWindow } from './window.ts'

/** Strict shares in the reference model: each tenant's part of what the queue's limits grant. */

const SECOND = 1_000_000

/** Whoever stands in line or is parked; asked when a script begins. */
export function activeTenants(queue: QueueState): number {
  const inLine = queue.tenants.flatMap(({ stands }) => levels.filter((level) => stands[level].present)).length
  return Math.max(1, inLine + queue.tenants.filter(({ parking }) => parking).length)
}

/** When a tenant that has used its part asks whether that has grown: within a second, or a thousand of them do in each. */
const asksAgain = (now: number, active: number): number => now + Math.max(SECOND, active * 1_000)

/** A bucket that is as many times slower as there are tenants, but grants one in each window. */
export class BucketShare extends OpenBucket {
  readonly #asksAgain: number

  constructor(
    whole: OpenBucket,
    stored: string | undefined,
    active: number,
    context: Omit<MeterContext, 'share' | 'jitter'>,
  ) {
    const rule = whole.rule
    const burst = Math.max(1, Math.floor(rule.burst / active))
    const perWindow = rule.count - rule.burst + 1
    const part: BucketRule = { ...rule, burst, count: perWindow - 1 + burst }
    const pace = whole.intervalBefore / Math.ceil((rule.window + whole.jitter) / perWindow)
    const share = Math.max(1 / active, 1 / perWindow) / pace
    super(part, stored, { ...context, jitter: whole.jitter, share })
    this.#asksAgain = asksAgain(context.now, active)
  }

  override instant(permits: number): number {
    return Math.min(super.instant(permits), this.#asksAgain)
  }
}

/** A whole number of each window; what rounding leaves goes to whoever asks first, one to a tenant. */
export class WindowShare extends OpenWindow {
  readonly #whole: OpenLimit & { meter: OpenWindow }
  readonly #now: number
  readonly #part: number
  readonly #leftOver: number
  readonly #active: number

  constructor(
    whole: OpenLimit & { meter: OpenWindow },
    stored: string | undefined,
    active: number,
    context: Omit<MeterContext, 'share' | 'jitter'>,
  ) {
    const rule = whole.rule as WindowRule
    const part = Math.max(1, Math.floor(rule.count / active))
    super({ ...rule, count: part }, stored, { ...context, jitter: whole.meter.jitter, share: 1 })
    this.#whole = whole
    this.#now = context.now
    this.#part = part
    this.#active = active
    this.#leftOver = Math.max(0, rule.count - active * part)
  }

  get #isExtraLeft(): boolean {
    return this.used <= this.#part && this.#whole.meter.extra < this.#leftOver
  }

  override available(): number {
    if (this.#whole.meter.available() === 0) return 0
    return Math.max(0, this.#part + (this.#isExtraLeft ? 1 : 0) - this.used)
  }

  override instant(permits: number): number {
    if (this.used === 0 || this.available() >= permits) return 0
    return Math.min(this.stop, asksAgain(this.#now, this.#active))
  }

  override charge(permits: number): undefined {
    const had = this.used
    super.charge(permits)
    if (this.used > this.#part && had <= this.#part && this.#whole.meter.extra < this.#leftOver) {
      this.#whole.meter.extra += 1
      this.#whole.save()
    }
  }
  override refund(permits: number, fence: number): void {
    const had = this.used
    super.refund(permits, fence)
    if (had <= this.#part || this.used > this.#part || this.#whole.meter.extra === 0) return
    this.#whole.meter.extra -= 1
    this.#whole.save()
  }
}
