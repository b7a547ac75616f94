import { checkOptions } from '../../assert.ts'
import type { Clock } from '../../clock.ts'
import { InvalidOptionsError } from '../../errors.ts'
import { problemOfName } from '../../store/names.ts'
import type { Requests } from '../../store/requests.ts'
import { declareAggregates } from '../../store/scripts/declare-aggregates.ts'
import type { IdlePace } from '../idle-pace.ts'
import { LAST_WORDS_MS, settledWithin } from '../last-words.ts'
import type { Sleeper, Waker } from '../waker.ts'
import { type Aggregate, type AggregateOptions, aggregateRules, type RegisteredAggregate } from './aggregate.ts'

// Less often where a process has more of the kind, and for so many times as long: two of them may be lost.
const DECLARE_EVERY_MS = 60_000
const HELD_PERIODS = 3

/**
 * The aggregates that this process has. It says so in the store, so that whoever finds one due and has it not can tell this
 * process, also where that runs no jobs.
 */
export class Aggregates implements Sleeper {
  readonly #requests: Requests
  readonly #waker: Waker
  readonly #clock: Clock
  readonly #pace: IdlePace
  readonly #onDue: () => void
  readonly #byType = new Map<string, RegisteredAggregate>()
  #cancelTimer: (() => void) | undefined
  #leavePace: (() => void) | undefined
  #isClosed = false

  /** @param parts - `onDue`: something may be due for this process. */
  constructor(parts: { requests: Requests; waker: Waker; clock: Clock; pace: IdlePace; onDue: () => void }) {
    this.#requests = parts.requests
    this.#waker = parts.waker
    this.#clock = parts.clock
    this.#pace = parts.pace
    this.#onDue = parts.onDue
  }

  get wakeKey(): string {
    return this.#requests.keys.wake
  }

  get types(): readonly string[] {
    return [...this.#byType.keys()]
  }

  get(type: string): RegisteredAggregate | undefined {
    return this.#byType.get(type)
  }

  /** Known to this process at once, to the store when it is declared. */
  add(type: string, make: Aggregate, options: AggregateOptions | undefined): void {
    const problem = problemOfName(type)
    if (problem) throw new InvalidOptionsError('aggregate', [{ path: 'type', problem }])
    if (typeof make !== 'function') {
      throw new InvalidOptionsError('aggregate', [{ path: 'aggregate', problem: 'must be a function' }])
    }
    const checked = checkOptions(`aggregate("${type}")`, options, aggregateRules)
    this.#byType.set(type, { type, make, ...checked })
    this.#leavePace ??= this.#pace.join()
    this.#cancelTimer ??= this.#declareLater()
  }

  /** Tells the store which types have an aggregate, and that this process is one that makes it. May be repeated. */
  async declare(): Promise<void> {
    if (this.#byType.size === 0 || this.#isClosed) return
    const heldForMs = HELD_PERIODS * this.#pace.stretch(DECLARE_EVERY_MS)
    const isDue = await declareAggregates(this.#requests, this.types, heldForMs)
    // Not before: a queue is registered by then, and known where it lives.
    if (!this.#isClosed) this.#waker.add(this)
    if (isDue) this.#onDue()
  }

  onWake(what: string | undefined): void {
    if (what !== undefined) this.#onDue()
  }

  /** Others are not to wait for this process. One that cannot say so is found out by the time it was declared for. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#leavePace?.()
    this.#cancelTimer?.()
    if (this.#byType.size === 0) return
    this.#waker.remove(this)
    const declared = declareAggregates(this.#requests, this.types, 0, { giveUpAfterMs: LAST_WORDS_MS })
    await settledWithin(declared, LAST_WORDS_MS)
  }

  #declareLater(): () => void {
    return this.#clock.setTimer(() => {
      this.#cancelTimer = this.#declareLater()
      // It has failed for now; it is declared for longer than until the next time.
      this.declare().catch(() => {})
    }, this.#pace.stretch(DECLARE_EVERY_MS))
  }
}
