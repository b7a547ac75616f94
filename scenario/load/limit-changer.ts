import type { Queue } from '../../src/index.ts'
import type { Span } from '../../test/support/arrivals.ts'
import { ChangingLimit } from './changing-limit.ts'
import { monotonicMs } from './clock.ts'
import { definitionsOf, type StackedLimits } from './stacked-limits.ts'

/** Twice what a grant keeps (0.6 × 50 ms), for the way of the call. */
const WAY_MS = 60

/** A setting and the time for which it was in force. */
export interface Period extends Span {
  readonly limits: StackedLimits
}

/** Changes all limits of a queue at once, and remembers what was in force when. */
export class LimitChanger {
  readonly queue = new ChangingLimit({ wayMs: WAY_MS })
  readonly tenant = new ChangingLimit({ wayMs: WAY_MS })
  readonly crowd = new ChangingLimit({ wayMs: WAY_MS })
  /** Those that are over. */
  readonly periods: Period[] = []
  readonly #changed: Queue
  readonly #midnight: number
  #current: StackedLimits
  #from: number

  /** @param options - `first` is what the queue was declared with; `midnight` is when a day begins, in ms since 1970. */
  constructor(options: { queue: Queue; first: StackedLimits; midnight: number }) {
    this.#changed = options.queue
    this.#midnight = options.midnight
    this.#current = options.first
    this.#from = monotonicMs()
    this.#note(options.first, { askedAt: 0, doneAt: 0 })
  }

  get current(): StackedLimits {
    return this.#current
  }

  async change(limits: StackedLimits): Promise<void> {
    const askedAt = monotonicMs()
    await this.#changed.limits.change(definitionsOf(limits, this.#midnight))
    const doneAt = monotonicMs()
    this.#note(limits, { askedAt, doneAt })
    this.periods.push({ limits: this.#current, from: this.#from, to: askedAt })
    this.#current = limits
    this.#from = doneAt
  }

  #note(limits: StackedLimits, when: { askedAt: number; doneAt: number }): void {
    this.queue.changed(limits.queue, when)
    this.tenant.changed(limits.tenant, when)
    this.crowd.changed(limits.crowd, when)
  }
}
