import { checkOptions, integer, optional, text } from '../../assert.ts'
import type { Clock } from '../../clock.ts'
import { ActionClosedError, ActionTakenError, InvalidOptionsError, isSluiceError } from '../../errors.ts'
import { type ActionPlace, placeAfter, readActionNames } from '../../store/action-list.ts'
import type { QueueKeys } from '../../store/keys.ts'
import { fromToken, type Level, nameRule, problemOfName, toToken } from '../../store/names.ts'
import type { Redis } from '../../store/redis.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { type OpenedAction, openAction } from '../../store/scripts/open-action.ts'
import { type FoundAction, readActions } from '../../store/scripts/read-actions.ts'
import { takeBackAction } from '../../store/scripts/take-back-action.ts'
import { isStoreAway } from '../is-store-away.ts'
import { Packer } from '../submission.ts'
import type { SubmitChoice, SubmitSummary, Submitter } from '../submitter.ts'
import type { Waker } from '../waker.ts'
import { Action, type ActionHost } from './action.ts'
import { type ActionInput, type CheckedAction, checkActionInput } from './action-input.ts'
import { type ActionView, hasEnded, idOf, toView } from './action-view.ts'
import { ActionWatcher } from './action-watcher.ts'
import { withFirst } from './with-first.ts'

/** A page of actions. */
export interface ActionPage {
  readonly actions: readonly ActionView[]
  /** Of the next page; undefined on the last. */
  readonly cursor: string | undefined
}

interface Parts {
  readonly queue: string
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly requests: Requests
  readonly waker: Waker
  readonly clock: Clock
  readonly maxPayloadBytes: number
  ready(): Promise<void>
  /** The same for whoever only looks. */
  readable(): Promise<void>
  onAggregating(): void
  submitter(options: SubmitChoice): Submitter
  /** Counts what is refused. */
  counted<T>(submit: () => Promise<T>): Promise<T>
}

// Each takes the script about 40 µs.
const READ_AT_ONCE = 100

/** The bulk actions of one queue: made, added to, found, aggregated. */
export class Actions implements ActionHost {
  readonly queue: string
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly requests: Requests
  readonly watcher: ActionWatcher
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
    this.queue = parts.queue
    this.redis = parts.redis
    this.keys = parts.keys
    this.requests = parts.requests
    this.watcher = new ActionWatcher(parts)
  }

  ready(): Promise<void> {
    return this.#parts.ready()
  }

  readable(): Promise<void> {
    return this.#parts.readable()
  }

  onAggregating(): void {
    this.#parts.onAggregating()
  }

  open(name: string, tenant: string): Action {
    for (const [path, value] of Object.entries({ action: name, tenant })) {
      const problem = problemOfName(value)
      if (problem) throw new InvalidOptionsError('action', [{ path, problem }])
    }
    return new Action(this, tenant, name)
  }

  async submit(input: ActionInput, options: SubmitChoice = {}): Promise<Action> {
    const checked = checkActionInput(input)
    options.signal?.throwIfAborted()
    const nowMs = this.#parts.clock.date()
    // Before anything is stored: a first job that cannot be would leave an empty action behind.
    const jobs = await withFirst(checked.jobs, (job) => this.#packerOf(checked, checked.rules).pack(job, 0, nowMs))
    await this.ready()
    const tokens = { tenant: toToken(checked.tenant), name: toToken(checked.name) }
    const webhook = checked.webhook ? JSON.stringify(checked.webhook) : ''
    const { rules, begunBy } = checked
    const action = { ...tokens, rules, webhook, ...(begunBy !== undefined && { begunBy }) }
    // A submit that has ended before its action was made makes none: nobody is told of what never held anything.
    const opened = await openAction(this.requests, action, { signal: options.signal })
    const goesOn = checked.from === 'accepted'
    const isForeign = goesOn && begunBy !== undefined && opened.begunBy !== begunBy
    if (opened.isSealed || hasEnded(opened.state)) {
      // Whoever goes on with an action finds that it was all there.
      if (goesOn && !isForeign) return new Action(this, checked.tenant, checked.name)
      throw new ActionClosedError({ action: idOf(this.queue, tokens) })
    }
    if (isForeign) throw new ActionTakenError({ action: idOf(this.queue, tokens) })
    const packer = this.#packerOf(checked, opened)
    const skip = goesOn ? opened.received : 0
    const submitted = this.#parts.submitter(options).all(jobs, packer, skip)
    const summary = await this.#unlessEnded(tokens, submitted).catch(async (error: unknown) => {
      const isGone = await this.#takeBack(tokens, opened, error)
      // Nobody can go on with an action whose name was never heard: it ends with what it has.
      if (!isGone && input.action === undefined) void this.#seal(tokens).catch(() => {})
      throw error
    })
    if (summary && checked.seals) await this.#seal(tokens)
    return new Action(this, checked.tenant, checked.name, summary)
  }

  /** @param place - Of the action: one that was made before keeps its own. */
  #packerOf({ tenant, defaults }: CheckedAction, place: { level: Level; lane: string }): Packer {
    const { level, lane: laneToken } = place
    return new Packer(defaults, this.#parts.maxPayloadBytes, { tenant, level, laneToken })
  }

  /** An action that this submit made, and that has received nothing because of the error, would stay open for ever. */
  async #takeBack(tokens: { tenant: string; name: string }, { isNew }: OpenedAction, error: unknown): Promise<boolean> {
    // A store that does not answer is not asked again.
    if (!isNew || isStoreAway(error)) return false
    return takeBackAction(this.requests, tokens).catch(() => false)
  }

  async #seal(tokens: { tenant: string; name: string }): Promise<void> {
    const state = await endAction(this.requests, { ...tokens, verb: 'seal' })
    if (state === 'AGGREGATING') this.onAggregating()
  }

  /** An action that ends while its jobs are still being read needs no more of them: undefined then. */
  async #unlessEnded(
    { tenant, name }: { tenant: string; name: string },
    submitted: Promise<SubmitSummary>,
  ): Promise<SubmitSummary | undefined> {
    try {
      return await submitted
    } catch (error) {
      if (!isSluiceError(error) || error.code !== 'SLUICE_ACTION_CLOSED') throw error
      const [found] = await repeatWhileUnavailable(() => readActions(this.requests, [`${tenant}:${name}`]))
      if (!found || !hasEnded(found.state)) throw error
      return undefined
    }
  }

  async add(
    action: FoundAction,
    jobs: ActionInput['jobs'],
    options: SubmitChoice & { from: 'start' | 'accepted' },
  ): Promise<SubmitSummary> {
    const packer = new Packer(action.type === '' ? {} : { type: action.type }, this.#parts.maxPayloadBytes, {
      tenant: fromToken(action.tenant),
      level: action.level,
      laneToken: action.lane,
    })
    const skip = options.from === 'accepted' ? action.received : 0
    return this.#parts.counted(() => this.#parts.submitter(options).all(jobs, packer, skip))
  }

  async list(page: { tenant?: string; cursor?: string; limit?: number }): Promise<ActionPage> {
    const { tenant, cursor, limit } = checkOptions('actions', page, {
      tenant: optional(nameRule),
      cursor: optional(text({ maxLength: 32, pattern: { test: cursorForm, words: 'a cursor that a page answered' } })),
      limit: integer({ min: 1, max: 500, default: 50 }),
    })
    await this.readable()
    const after = cursor === undefined ? undefined : fromCursor(cursor)
    const names = await readActionNames(this.redis, this.keys, {
      tenant: tenant === undefined ? undefined : toToken(tenant),
      after,
      count: limit,
    })
    const found: (FoundAction | undefined)[] = []
    for (let from = 0; from < names.length; from += READ_AT_ONCE) {
      const some = names.slice(from, from + READ_AT_ONCE).map(({ name }) => name)
      found.push(...(await readActions(this.requests, some)))
    }
    return {
      actions: found.filter((action) => action !== undefined).map((action) => toView(this.queue, action)),
      cursor: names.length < limit ? undefined : toCursor(placeAfter(names, after)),
    }
  }

  /** Whoever waits for an action hears that this process does not any more. */
  close(): void {
    this.watcher.close()
  }
}

/** Of a page of actions: `<µs>-<passed>`. */
export const cursorForm = /^\d{1,17}-\d{1,9}$/

function toCursor(place: ActionPlace | undefined): string | undefined {
  return place && `${place.madeUs}-${place.passed}`
}

function fromCursor(cursor: string): ActionPlace {
  const [madeUs = '', passed] = cursor.split('-')
  return { madeUs, passed: Number(passed) }
}
