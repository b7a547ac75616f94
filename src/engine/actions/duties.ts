import { ClosedError, isSluiceError } from '../../errors.ts'
import { encodeError } from '../../store/record.ts'
import { type DutyOutcome, settleDuty } from '../../store/scripts/settle-duty.ts'
import { type Duty, type DutyKind, takeDuty } from '../../store/scripts/take-duty.ts'
import { LAST_WORDS_MS, settledWithin } from '../last-words.ts'
import type { Log, LogEvent } from '../log.ts'
import { DutyLease } from './duty-lease.ts'
import { type DutyWorkParts, doDuty } from './duty-work.ts'

/**
 * Duties of one kind that a process does at once. Each kind has hands of its own: aggregates are the user's code and
 * webhooks wait for strangers, and neither may keep the others from being done.
 */
const HANDS: Readonly<Record<DutyKind, number>> = { aggregate: 4, webhook: 4, seal: 2, free: 2 }
// An aggregate that fails is tried four times, like a job; a webhook for about two days.
const MOST_TRIES: Readonly<Record<DutyKind, number>> = { aggregate: 4, webhook: 20, seal: Infinity, free: Infinity }
const FAILED: Readonly<Record<DutyKind, LogEvent>> = {
  aggregate: 'aggregate.failed',
  webhook: 'webhook.failed',
  seal: 'seal.failed',
  free: 'free.failed',
}
const LONGEST_WAIT_MS = 4 * 3_600_000
// Claims say that something is due as long as it is. What this process cannot do it is not asked about each time: of what a
// claim says meanwhile only the last counts, when this is over. In an idle process nobody else would ask for long.
const QUIET_MS = 1_000
const RETRY_MS = 1_000
// A timer may fire a millisecond early; an instant that is not over yet would be looked at in vain.
const SLACK_MS = 5

/** A duty under way here. */
interface Held {
  readonly kind: DutyKind
  /** Aborted when it is given up: what runs for it should end. */
  readonly stop: AbortController
  /** Others may do it from now on. */
  giveUp: () => void
}

/**
 * What a queue has to do besides jobs: aggregates, webhooks, sealing, freeing. Each is leased like a job, renewed while it
 * takes, and taken up by another process when this one dies. Looked for when a claim says that something is due, or another
 * process that this one has the aggregate for it.
 */
export class Duties {
  readonly #parts: DutyWorkParts
  readonly #leaseMs: number
  readonly #graceMs: number
  readonly #unknownTypeMs: number
  readonly #log: Log
  readonly #held = new Set<Held>()
  readonly #running = new Set<Promise<void>>()
  readonly #timers = new Set<() => void>()
  #isServing = false
  #isLooking = false
  #looksAgain = false
  #quietUntil = 0
  #looksAfterQuiet = false
  #isClosed = false
  #hasGivenUp = false

  constructor(
    parts: DutyWorkParts & {
      leaseMs: number
      /** What is under way when this closes gets so long to end. */
      graceMs: number
      unknownTypeMs: number
      log: Log
    },
  ) {
    this.#parts = parts
    this.#leaseMs = parts.leaseMs
    this.#graceMs = parts.graceMs
    this.#unknownTypeMs = parts.unknownTypeMs
    this.#log = parts.log
  }

  /** This process works for the queue: it does what is due. Until then it only tells those who do. */
  serve(): void {
    this.#isServing = true
  }

  /** Something may be due. */
  look(): void {
    const quietMs = this.#quietUntil - this.#parts.clock.now()
    if (quietMs <= 0) {
      this.#lookNow()
    } else if (!this.#looksAfterQuiet) {
      this.#looksAfterQuiet = true
      this.#lookAfter(quietMs)
    }
  }

  /** Something has changed here: an aggregate was added, a hand is free, or somebody says that this process can do it. */
  lookAnew(): void {
    this.#quietUntil = 0
    this.#lookNow()
  }

  /**
   * What is under way gets as long to end as running jobs do; what is left then is due for others at once. A question about
   * what is due is nothing that needs a grace.
   */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const cancel of this.#timers) cancel()
    if (this.#held.size > 0) await this.#endedWithin(this.#graceMs)
    this.#giveUp()
    await settledWithin(Promise.all(this.#running), LAST_WORDS_MS)
  }

  #endedWithin(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#parts.clock.setTimer(resolve, ms)
      void Promise.all(this.#running).then(() => {
        cancel()
        resolve()
      })
    })
  }

  #giveUp(): void {
    this.#hasGivenUp = true
    for (const held of this.#held) {
      held.giveUp()
      held.stop.abort(
        new ClosedError(`The queue "${this.#parts.name}"`, 'This process is shutting down: it is done again.'),
      )
    }
  }

  #lookNow(): void {
    if (this.#isClosed) return
    if (this.#isLooking) {
      this.#looksAgain = true
      return
    }
    this.#isLooking = true
    const looking = this.#takeAll()
      .catch((error: unknown) => {
        this.#warn('duty.failed', 'What is due could not be asked for; it is asked for again.', error)
        this.#lookAfter(RETRY_MS)
      })
      .finally(() => {
        this.#isLooking = false
        this.#running.delete(looking)
        if (this.#looksAgain) this.#lookNow()
      })
    this.#running.add(looking)
  }

  /** Begins all that is due and that there are hands for. */
  async #takeAll(): Promise<void> {
    const { requests, aggregates, clock } = this.#parts
    const [leaseMs, unknownTypeMs] = [this.#leaseMs, this.#unknownTypeMs]
    while (!this.#isClosed) {
      this.#looksAgain = false
      const kinds = this.#freeKinds()
      const reply = await takeDuty(requests, { kinds, types: aggregates.types, leaseMs, unknownTypeMs })
      if (reply.word === 'taken') this.#begin(reply.duty)
      else if (reply.word === 'none' && !this.#looksAgain) {
        if (reply.passed > 0) this.#quietUntil = clock.now() + QUIET_MS
        return
      }
    }
  }

  #freeKinds(): DutyKind[] {
    if (!this.#isServing) return []
    const busy = [...this.#held].map(({ kind }) => kind)
    return (Object.keys(HANDS) as DutyKind[]).filter(
      (kind) => busy.filter((each) => each === kind).length < HANDS[kind],
    )
  }

  #begin(duty: Duty): void {
    const held: Held = { kind: duty.kind, stop: new AbortController(), giveUp: () => {} }
    this.#held.add(held)
    const run = this.#do(duty, held).finally(() => {
      this.#held.delete(held)
      this.#running.delete(run)
      this.lookAnew()
    })
    this.#running.add(run)
  }

  async #do(duty: Duty, held: Held): Promise<void> {
    const lease = new DutyLease({
      clock: this.#parts.clock,
      leaseMs: this.#leaseMs,
      fence: duty.fence,
      renew: (fence) =>
        settleDuty(this.#parts.requests, { id: duty.id, fence }, { outcome: 'renewed', afterMs: this.#leaseMs }),
      onLost: () => held.stop.abort(new Error(`the duty "${duty.id}" is not this process's any more`)),
    })
    const outcome = await this.#outcomeInTime(duty, held)
    await this.#settle({ id: duty.id, fence: await lease.release() }, outcome)
    if (outcome.outcome !== 'done') this.#lookAfter(outcome.afterMs + SLACK_MS)
  }

  /** Claims look after duties as well, but only when there is something to claim or another instant comes. */
  #lookAfter(ms: number): void {
    if (this.#isClosed) return
    const cancel = this.#parts.clock.setTimer(() => {
      this.#timers.delete(cancel)
      this.#looksAfterQuiet = false
      this.lookAnew()
    }, ms)
    this.#timers.add(cancel)
  }

  async #settle(duty: Pick<Duty, 'id' | 'fence'>, outcome: DutyOutcome): Promise<void> {
    await settleDuty(this.#parts.requests, duty, outcome).catch((error: unknown) =>
      this.#warn('duty.unconfirmed', `What became of duty "${duty.id}" could not be stored; it is done again.`, error),
    )
  }

  /** What became of it; of one that takes longer than this process has, that others may do it. */
  #outcomeInTime(duty: Duty, held: Held): Promise<DutyOutcome> {
    return new Promise((resolve) => {
      held.giveUp = () => resolve({ outcome: 'renewed', afterMs: 0 })
      // It was taken while this closed: nothing is begun that another would do a second time.
      if (this.#hasGivenUp) return held.giveUp()
      void doDuty(this.#parts, duty, held.stop).then(resolve, (error: unknown) => resolve(this.#failed(duty, error)))
    })
  }

  #failed(duty: Duty, error: unknown): DutyOutcome {
    const isPermanent = isSluiceError(error) && error.code === 'SLUICE_PERMANENT'
    const isLast = isPermanent || duty.tries + 1 >= MOST_TRIES[duty.kind]
    const afterMs = Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** duty.tries) * (0.75 + Math.random() / 2)
    if (!this.#hasGivenUp) this.#warn(FAILED[duty.kind], failureOf(duty, isLast ? undefined : afterMs), error)
    if (isLast) return { outcome: 'done', ...(duty.kind === 'aggregate' ? { error: encodeError(error) } : {}) }
    return { outcome: 'again', afterMs }
  }

  #warn(event: LogEvent, message: string, error: unknown): void {
    this.#log({ level: 'warn', event, message: `Queue "${this.#parts.name}": ${message}`, error })
  }
}

/** What an operator reads. @param afterMs - Until the next try; undefined when it was the last. */
function failureOf({ id, kind, tries }: Duty, afterMs: number | undefined): string {
  const what = `Duty "${id}" failed ${tries + 1} times`
  if (afterMs !== undefined) return `${what}; it is tried again in ${Math.ceil(afterMs / 1_000)} s.`
  const end = kind === 'webhook' ? 'nobody is told that the action has ended' : 'the action has failed'
  return `${what} and is given up: ${end}. Its summary says what became of its jobs.`
}
