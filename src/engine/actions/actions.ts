import { randomBytes } from 'node:crypto'
import { checkOptions, integer, optional, text } from '../../assert.ts'
import { ActionClosedError, InvalidOptionsError } from '../../errors.ts'
import { readActionNames } from '../../store/action-list.ts'
import type { QueueKeys } from '../../store/keys.ts'
import { fromToken, problemOfName, toToken } from '../../store/names.ts'
import type { Redis } from '../../store/redis.ts'
import type { Requests } from '../../store/requests.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { openAction } from '../../store/scripts/open-action.ts'
import { type FoundAction, readActions } from '../../store/scripts/read-actions.ts'
import { Packer } from '../submission.ts'
import type { SubmitSummary, Submitter } from '../submitter.ts'
import type { Waker } from '../waker.ts'
import { Action, type ActionHost, type AddOptions } from './action.ts'
import { type ActionInput, checkActionInput } from './action-input.ts'
import { type ActionView, hasEnded, idOf, toView } from './action-view.ts'
import { ActionWatcher } from './action-watcher.ts'

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
  readonly maxPayloadBytes: number
  ready(): Promise<void>
  onAggregating(): void
  submitter(options: { whenFull?: 'wait' | 'error' | undefined }): Submitter
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

  async submit(input: ActionInput, options: { whenFull?: 'wait' | 'error' | undefined } = {}): Promise<Action> {
    const checked = checkActionInput(input, generatedName)
    await this.ready()
    const tokens = { tenant: toToken(checked.tenant), name: toToken(checked.name) }
    const webhook = checked.webhook ? JSON.stringify(checked.webhook) : ''
    const opened = await openAction(this.requests, { ...tokens, rules: checked.rules, webhook })
    if (opened.isSealed || hasEnded(opened.state)) {
      // Whoever goes on with an action finds that it was all there.
      if (checked.from === 'accepted') return new Action(this, checked.tenant, checked.name)
      throw new ActionClosedError({ action: idOf(this.queue, tokens) })
    }
    const packer = new Packer(checked.defaults, this.#parts.maxPayloadBytes, {
      tenant: checked.tenant,
      level: opened.level,
      laneToken: opened.lane,
    })
    const skip = checked.from === 'accepted' ? opened.received : 0
    const submitted = this.#parts.submitter(options).all(checked.jobs, packer, skip)
    const summary = await this.#unlessEnded(tokens, submitted).catch((error: unknown) => {
      // Nobody can go on with an action whose name was never heard: it ends with what it has.
      if (input.action === undefined) void this.#seal(tokens).catch(() => {})
      throw error
    })
    if (summary && checked.seals) await this.#seal(tokens)
    return new Action(this, checked.tenant, checked.name, summary)
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
      if (!(error instanceof ActionClosedError)) throw error
      const [found] = await readActions(this.requests, [`${tenant}:${name}`])
      if (!found || !hasEnded(found.state)) throw error
      return undefined
    }
  }

  async add(action: FoundAction, jobs: ActionInput['jobs'], options: AddOptions): Promise<SubmitSummary> {
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
      tenant: optional(text({ maxLength: 256 })),
      cursor: optional(text({ maxLength: 20, pattern: { test: /^\d+$/, words: 'a cursor that a page answered' } })),
      limit: integer({ min: 1, max: 500, default: 50 }),
    })
    await this.ready()
    const names = await readActionNames(this.redis, this.keys, {
      tenant: tenant === undefined ? undefined : toToken(tenant),
      before: cursor,
      count: limit,
    })
    const found: (FoundAction | undefined)[] = []
    for (let from = 0; from < names.length; from += READ_AT_ONCE) {
      const some = names.slice(from, from + READ_AT_ONCE).map(({ name }) => name)
      found.push(...(await readActions(this.requests, some)))
    }
    return {
      actions: found.filter((action) => action !== undefined).map((action) => toView(this.queue, action)),
      cursor: names.length < limit ? undefined : names.at(-1)?.madeUs,
    }
  }

  /** Whoever waits for an action hears that this process does not any more. */
  close(): void {
    this.watcher.close()
  }
}

function generatedName(): string {
  return `${Date.now().toString(36)}-${randomBytes(5).toString('hex')}`
}
