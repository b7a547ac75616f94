import { hash } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import { readWebhook } from '../../store/action-list.ts'
import { fromToken } from '../../store/names.ts'
import { encodeError } from '../../store/record.ts'
import type { Requests } from '../../store/requests.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { freeTrash } from '../../store/scripts/free-trash.ts'
import { type FoundAction, readActions } from '../../store/scripts/read-actions.ts'
import { type DutyOutcome, settleDuty } from '../../store/scripts/settle-duty.ts'
import { type Duty, takeDuty } from '../../store/scripts/take-duty.ts'
import type { Log } from '../log.ts'
import { Action, type JobResult } from './action.ts'
import type { Webhook } from './action-input.ts'
import { type ActionSummary, toSummary } from './action-view.ts'
import type { Actions } from './actions.ts'
import { DutyLease } from './duty-lease.ts'

/** Tells a webhook of an action's end; rejects when it should be told again. */
export type TellWebhook = (webhook: Webhook, id: string, summary: ActionSummary) => Promise<void>

const AT_ONCE = 4
const FREED_AT_ONCE = 1_000
// An aggregate that fails is tried four times, like a job; a webhook for about two days.
const MOST_TRIES: Readonly<Record<Duty['kind'], number>> = { aggregate: 4, webhook: 20, seal: Infinity, free: Infinity }
const LONGEST_WAIT_MS = 4 * 3_600_000
// Another process may have what this one lacks.
const PASS_ON_MS = 2_000
// To tell the store what is given up; one that does not answer finds out by the lease.
const LAST_WORD_MS = 5_000
// A timer may fire a millisecond early; an instant that is not over yet would be looked at in vain.
const SLACK_MS = 5

/**
 * What a queue has to do besides jobs: aggregates, webhooks, sealing, freeing. Each is leased like a job, renewed while it
 * takes, and taken up by another process when this one dies. Looked for when a claim says that something is due.
 */
export class Duties {
  readonly #queue: string
  readonly #leaseMs: number
  readonly #graceMs: number
  readonly #unknownTypeMs: number
  readonly #actions: Actions
  readonly #requests: Requests
  readonly #clock: Clock
  readonly #log: Log
  readonly #tellWebhook: TellWebhook | undefined
  readonly #running = new Set<Promise<void>>()
  readonly #timers = new Set<() => void>()
  /** Of each duty under way, what gives it up. */
  readonly #givingUp = new Set<() => void>()
  #isClosed = false
  #hasGivenUp = false

  constructor(parts: {
    name: string
    leaseMs: number
    /** What is under way when this closes gets so long to end. */
    graceMs: number
    unknownTypeMs: number
    actions: Actions
    requests: Requests
    clock: Clock
    log: Log
    tellWebhook: TellWebhook | undefined
  }) {
    this.#queue = parts.name
    this.#leaseMs = parts.leaseMs
    this.#graceMs = parts.graceMs
    this.#unknownTypeMs = parts.unknownTypeMs
    this.#actions = parts.actions
    this.#requests = parts.requests
    this.#clock = parts.clock
    this.#log = parts.log
    this.#tellWebhook = parts.tellWebhook
  }

  /** Something is due. */
  look(): void {
    if (this.#isClosed || this.#running.size >= AT_ONCE) return
    const run = this.#takeOne()
      .catch((error: unknown) => this.#warn('duty.failed', 'A duty could not be done; it is tried again.', error))
      .finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  /** What is under way gets as long to end as running jobs do; what is left then is due for others at once. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const cancel of this.#timers) cancel()
    const cancelGivingUp = this.#clock.setTimer(() => this.#giveUp(), this.#graceMs)
    await new Promise<void>((resolve) => {
      const cancel = this.#clock.setTimer(resolve, this.#graceMs + LAST_WORD_MS)
      void Promise.all(this.#running).then(() => {
        cancel()
        resolve()
      })
    })
    cancelGivingUp()
  }

  #giveUp(): void {
    this.#hasGivenUp = true
    for (const giveUp of this.#givingUp) giveUp()
  }

  async #takeOne(): Promise<void> {
    for (;;) {
      const duty = this.#isClosed ? undefined : await takeDuty(this.#requests, { leaseMs: this.#leaseMs })
      if (!duty) return
      this.look()
      await this.#do(duty)
    }
  }

  async #do(duty: Duty): Promise<void> {
    const lease = new DutyLease({
      clock: this.#clock,
      leaseMs: this.#leaseMs,
      fence: duty.fence,
      renew: (fence) =>
        settleDuty(this.#requests, { id: duty.id, fence }, { outcome: 'renewed', afterMs: this.#leaseMs }),
    })
    const outcome = await this.#outcomeInTime(duty)
    await this.#settle({ id: duty.id, fence: await lease.release() }, outcome)
    if (outcome.outcome !== 'done') this.#lookAfter(outcome.afterMs + SLACK_MS)
  }

  /** Claims look after duties as well, but only when there is something to claim or another instant comes. */
  #lookAfter(ms: number): void {
    if (this.#isClosed) return
    const cancel = this.#clock.setTimer(() => {
      this.#timers.delete(cancel)
      this.look()
    }, ms)
    this.#timers.add(cancel)
  }

  async #settle(duty: Pick<Duty, 'id' | 'fence'>, outcome: DutyOutcome): Promise<void> {
    await settleDuty(this.#requests, duty, outcome).catch((error: unknown) =>
      this.#warn('duty.unconfirmed', `What became of duty "${duty.id}" could not be stored; it is done again.`, error),
    )
  }

  /** What became of it; of one that takes longer than this process has, that others may do it. */
  #outcomeInTime(duty: Duty): Promise<DutyOutcome> {
    return new Promise((resolve) => {
      const giveUp = () => resolve({ outcome: 'renewed', afterMs: 0 })
      // It was taken while this closed: nothing is begun that another would do a second time.
      if (this.#hasGivenUp) return giveUp()
      this.#givingUp.add(giveUp)
      void this.#outcomeOf(duty)
        .then(resolve)
        .finally(() => this.#givingUp.delete(giveUp))
    })
  }

  async #outcomeOf(duty: Duty): Promise<DutyOutcome> {
    try {
      switch (duty.kind) {
        case 'seal':
          await endAction(this.#requests, { tenant: duty.tenant, name: duty.name, verb: 'seal' })
          return { outcome: 'done' }
        case 'free':
          while ((await freeTrash(this.#requests, duty.tenant, FREED_AT_ONCE)) > 0);
          return { outcome: 'done' }
        case 'webhook':
          return await this.#webhook(duty)
        case 'aggregate':
          return await this.#aggregate(duty)
      }
    } catch (error) {
      return this.#failed(duty, error)
    }
  }

  #failed(duty: Duty, error: unknown): DutyOutcome {
    const isLast = duty.tries + 1 >= MOST_TRIES[duty.kind]
    const afterMs = Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** duty.tries) * (0.75 + Math.random() / 2)
    if (!this.#hasGivenUp) this.#warn(`${duty.kind}.failed`, failureOf(duty, isLast ? undefined : afterMs), error)
    if (isLast) return { outcome: 'done', ...(duty.kind === 'aggregate' ? { error: encodeError(error) } : {}) }
    return { outcome: 'again', afterMs }
  }

  async #webhook({ tenant, name }: Duty): Promise<DutyOutcome> {
    const { redis, keys } = this.#actions
    const [found] = await readActions(this.#requests, [`${tenant}:${name}`], { withStatistics: true })
    const text = found && (await readWebhook(redis, keys, tenant, name))
    if (!found || !text) return { outcome: 'done' }
    if (!this.#tellWebhook) return { outcome: 'renewed', afterMs: PASS_ON_MS }
    const summary = toSummary(this.#queue, found)
    await this.#tellWebhook(JSON.parse(text) as Webhook, messageId(summary.id, found.createdAt), summary)
    return { outcome: 'done' }
  }

  async #aggregate({ tenant, name }: Duty): Promise<DutyOutcome> {
    const [found] = await readActions(this.#requests, [`${tenant}:${name}`])
    if (!found) return { outcome: 'done' }
    const aggregate = this.#actions.aggregates.get(found.type)
    if (!aggregate) return this.#passOn(found)
    const action = new Action(this.#actions, fromToken(tenant), fromToken(name))
    const results: AsyncIterable<JobResult> = action.results({ order: 'job' })
    const value = await aggregate(results)
    return { outcome: 'done', aggregate: JSON.stringify(value ?? null) }
  }

  /** Another process may have the aggregate; one that nobody has had for as long as a type may be unknown is missing. */
  #passOn({ type, lastEndAt, createdAt }: FoundAction): DutyOutcome {
    if (Date.now() - (lastEndAt || createdAt) < this.#unknownTypeMs) return { outcome: 'renewed', afterMs: PASS_ON_MS }
    return { outcome: 'done', error: encodeError(new Error(`no worker has an aggregate for the type "${type}"`)) }
  }

  #warn(event: string, message: string, error: unknown): void {
    this.#log({ level: 'warn', event, message: `Queue "${this.#queue}": ${message}`, error })
  }
}

/** What an operator reads. @param afterMs - Until the next try; undefined when it was the last. */
function failureOf({ id, kind, tries }: Duty, afterMs: number | undefined): string {
  const what = `Duty "${id}" failed ${tries + 1} times`
  if (afterMs !== undefined) return `${what}; it is tried again in ${Math.ceil(afterMs / 1_000)} s.`
  const end = kind === 'webhook' ? 'nobody is told that the action has ended' : 'the action has failed'
  return `${what} and is given up: ${end}. Its summary says what became of its jobs.`
}

/** The same whenever it is told, so that whoever hears it twice can tell; names may hold what no header can. */
function messageId(action: string, createdAt: number): string {
  return `msg_${hash('sha256', `${action}:${createdAt}`, 'hex').slice(0, 32)}`
}
