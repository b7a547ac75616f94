import { abortSignal, checkOptions, integer, oneOf, optional } from '../../assert.ts'
import { systemClock } from '../../clock.ts'
import { InvalidOptionsError, UnknownActionError, WaitedTooLongError } from '../../errors.ts'
import { type ActionLetter, lettersOf, resultsByFinish, resultsByJob } from '../../store/action-results.ts'
import type { QueueKeys } from '../../store/keys.ts'
import { isOrderedLane, toToken } from '../../store/names.ts'
import type { JobErrorRecord } from '../../store/record.ts'
import type { Redis } from '../../store/redis.ts'
import { repeatWhileUnavailable } from '../../store/repeat.ts'
import type { Requests } from '../../store/requests.ts'
import { endAction } from '../../store/scripts/end-action.ts'
import { type FoundAction, readActions } from '../../store/scripts/read-actions.ts'
import { takeDeadLetter } from '../../store/scripts/take-dead-letter.ts'
import { pauseFor } from '../pause-for.ts'
import { SUBMIT_GRACE_MS, type SubmitChoice, type SubmitSummary } from '../submitter.ts'
import { unlessAborted } from '../unless-aborted.ts'
import { type ActionInput, type ActionJobInput, iterable } from './action-input.ts'
import {
  type ActionProgress,
  type ActionSummary,
  type ActionView,
  hasEnded,
  idOf,
  toProgress,
  toSummary,
  toView,
} from './action-view.ts'
import type { ActionWatcher, Changes } from './action-watcher.ts'

/** What became of one job of an action that keeps results. */
export interface JobResult {
  readonly id: string
  readonly state: 'succeeded' | 'failed'
  /** What its handler returned; missing if that was nothing. */
  readonly result?: unknown
  /** Its result was not kept: this is its size as JSON. */
  readonly resultBytes?: number
  readonly error?: JobErrorRecord
  /** Runs, the last one included. */
  readonly attempts: number
  /** Of the last run. */
  readonly durationMs: number
  readonly endedAt: number
}

/** More jobs for an action. */
export interface AddOptions {
  /** As of `ActionInput`. @default 'start' */
  from?: 'start' | 'accepted'
  /** Instead of the queue's. */
  whenFull?: 'wait' | 'error'
  /** Aborted, nothing more is stored and the submit rejects with the reason; what was stored by then stays. */
  signal?: AbortSignal
}

/** What an action needs of its queue. */
export interface ActionHost {
  readonly queue: string
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly requests: Requests
  readonly watcher: ActionWatcher
  ready(): Promise<void>
  /** The same for whoever only looks. */
  readable(): Promise<void>
  /** Its last job had ended when it was sealed: whoever makes its aggregate is to hear of it. */
  onAggregating(): void
  add(
    action: FoundAction,
    jobs: ActionInput['jobs'],
    options: SubmitChoice & { from: 'start' | 'accepted' },
  ): Promise<SubmitSummary>
  submit(input: ActionInput): Promise<Action>
}

// Progress comes at most this often; so do the messages of the scripts (lua/actions.lua).
const STEP_MS = 100
const MOST_RETRIES = 1_000

const waitRules = {
  timeoutMs: optional(integer({ min: 1, max: 2 ** 31 - 1 })),
  signal: optional(abortSignal),
}

/**
 * A bulk action: jobs of one tenant, submitted together; the unit of progress, cancelling and completion. This is a
 * handle: it holds nothing but names, and any process can have one.
 */
export class Action {
  /** Names its place: `<queue>:<tenant>:<name>`. */
  readonly id: string
  readonly queue: string
  readonly tenant: string
  readonly name: string
  /** Jobs stored by the submit that answered this handle; 0 for any other handle. */
  readonly accepted: number
  /** Of the same submit: jobs whose ids were known. */
  readonly duplicates: number
  readonly #host: ActionHost
  readonly #tokens: { readonly tenant: string; readonly name: string }

  /** Made by the queue. */
  constructor(host: ActionHost, tenant: string, name: string, submitted?: SubmitSummary) {
    this.#host = host
    this.#tokens = { tenant: toToken(tenant), name: toToken(name) }
    this.id = idOf(host.queue, this.#tokens)
    this.queue = host.queue
    this.tenant = tenant
    this.name = name
    this.accepted = submitted?.accepted ?? 0
    this.duplicates = submitted?.duplicates ?? 0
  }

  /** As it stands; undefined when there is none, or not any more. */
  async view(): Promise<ActionView | undefined> {
    const found = await this.#read()
    return found && toView(this.queue, found)
  }

  /** What became of its jobs, so far or in the end. */
  async summary(): Promise<ActionSummary | undefined> {
    const found = await this.#read({ withStatistics: true })
    return found && toSummary(this.queue, found)
  }

  /** Adds jobs while it is open; several producers may. It is not sealed by this. */
  async submit(jobs: ActionInput['jobs'], options: AddOptions = {}): Promise<SubmitSummary> {
    const checked = checkOptions(
      'action.submit',
      { jobs, ...options },
      {
        jobs: iterable,
        from: oneOf(['start', 'accepted'], { default: 'start' }),
        whenFull: optional(oneOf(['wait', 'error'])),
        signal: optional(abortSignal),
      },
    )
    const add = async () => this.#host.add(await this.#known(), checked.jobs, checked)
    return unlessAborted(add(), checked.signal, SUBMIT_GRACE_MS)
  }

  /** Nothing more is added: it completes when its last job has ended. Sealing again changes nothing. */
  async seal(): Promise<void> {
    await this.#end('seal')
  }

  /**
   * Ends it now: what waits is dropped, what runs gets its signal. Answers how it stands; one that had ended before stays as
   * it ended.
   */
  async cancel(): Promise<ActionView> {
    await this.#end('cancel')
    return toView(this.queue, await this.#known())
  }

  /**
   * How far it is, now and whenever something changes, at most ten times a second. Ends when the action has ended and none of
   * its jobs runs any more.
   */
  async *progress(options: { signal?: AbortSignal } = {}): AsyncGenerator<ActionProgress, void, undefined> {
    const { signal } = checkOptions('progress', options, { signal: optional(abortSignal) })
    let shownAt = Number.NEGATIVE_INFINITY
    for await (const found of this.#changes(signal)) {
      // The end comes at once, for those who wait for it alone.
      const earlyMs = Math.ceil(shownAt + STEP_MS - performance.now())
      if (earlyMs > 0) await pauseFor(systemClock, earlyMs, signal)
      signal?.throwIfAborted()
      shownAt = performance.now()
      yield toProgress(found)
    }
  }

  /** Resolves when it has ended, whichever way; rejects with WaitedTooLongError after `timeoutMs`. */
  async finished(options: { signal?: AbortSignal; timeoutMs?: number } = {}): Promise<ActionSummary> {
    const { timeoutMs, signal } = checkOptions('finished', options, waitRules)
    const tooLong = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
    const signals = [signal, tooLong].filter((each) => each !== undefined)
    const either = signals.length > 0 ? AbortSignal.any(signals) : undefined
    try {
      for await (const _ of this.#changes(either)) {
        // The last one is the end.
      }
      const found = await unlessAborted(this.#known({ withStatistics: true }), either)
      return toSummary(this.queue, found)
    } catch (error) {
      if (tooLong?.aborted && !signal?.aborted) {
        throw new WaitedTooLongError({ what: `action "${this.id}"`, timeoutMs: timeoutMs as number })
      }
      throw error
    }
  }

  /**
   * What became of its jobs one by one, if it keeps results: of those that have ended so far. In the order in which the jobs
   * were submitted (those with a delay come last), or in which they ended.
   */
  async *results(options: { order?: 'job' | 'finish' } = {}): AsyncGenerator<JobResult, void, undefined> {
    const { order } = checkOptions('results', options, { order: oneOf(['job', 'finish'], { default: 'job' }) })
    for await (const line of this.resultLines({ order })) yield JSON.parse(line) as JobResult
  }

  /** The same as JSON texts, for whoever passes them on. */
  async *resultLines(options: { order: 'job' | 'finish' }): AsyncGenerator<string, void, undefined> {
    const found = await this.#existing()
    const source = { redis: this.#host.redis, keys: this.#host.keys, ...this.#tokens }
    yield* options.order === 'job' ? resultsByJob(source, found) : resultsByFinish(source)
  }

  /**
   * Runs its dead letters again, as an action of their own (`<name>.retry-1` and so on), and answers that. This one stays as
   * it ended. Interrupted, it goes on when it is called again. A letter that cannot be read stays where it is.
   */
  async retryFailed(): Promise<Action> {
    const found = await this.#known()
    const source = { redis: this.#host.redis, keys: this.#host.keys, ...this.#tokens }
    const retried = await this.#host.submit({
      tenant: this.tenant,
      action: await this.#nextRetry(),
      level: found.level,
      ordered: isOrderedLane(found.lane),
      keepResults: found.keepResults,
      ...(found.type === '' ? {} : { type: found.type }),
      seal: false,
      jobs: [],
    })
    for await (const letters of lettersOf(source)) {
      await retried.submit(letters.map(toJob))
      // No other than those that were submitted: jobs may die meanwhile.
      const { requests } = this.#host
      await Promise.all(letters.map(({ jobKey }) => takeDeadLetter(requests, { jobKey, retries: false })))
    }
    await retried.seal()
    return retried
  }

  /** The first name that is free, or that of a retry which was interrupted before it was sealed. */
  async #nextRetry(): Promise<string> {
    for (let number = 1; number <= MOST_RETRIES; number++) {
      const name = `${this.name}.retry-${number}`
      const key = `${this.#tokens.tenant}:${toToken(name)}`
      const [found] = await repeatWhileUnavailable(() => readActions(this.#host.requests, [key]))
      if (!found?.isSealed) return name
    }
    const problem = `was retried ${MOST_RETRIES} times: retry the last of its retries instead`
    throw new InvalidOptionsError('retryFailed', [{ path: `action "${this.id}"`, problem }])
  }

  /** As it stands now and after every change, a step apart; and its end, at once. */
  async *#changes(signal: AbortSignal | undefined): AsyncGenerator<FoundAction> {
    // Whatever it waits for, the signal ends it: also while the store is away, and each call is repeated for long.
    await unlessAborted(this.#host.ready(), signal)
    const changes = await this.#follow(signal)
    let last = ''
    let shownAt = Number.NEGATIVE_INFINITY
    try {
      for (;;) {
        signal?.throwIfAborted()
        const found = await unlessAborted(this.#known(), signal)
        const text = JSON.stringify([found.state, found.isSealed, found.counts])
        const isNew = text !== last
        const isOver = hasEnded(found.state) && found.counts.running === 0
        if (isNew && (isOver || performance.now() - shownAt >= STEP_MS)) {
          last = text
          shownAt = performance.now()
          yield found
        }
        if (isOver) return
        // Of several changes within a step a script tells only the first, and the end: the look after a step shows the others.
        const stepMs = Math.max(0, shownAt + STEP_MS - performance.now())
        await unlessAborted(changes.next(isNew ? stepMs : undefined), signal)
      }
    } finally {
      changes.close()
    }
  }

  #follow(signal: AbortSignal | undefined): Promise<Changes> {
    const following = this.#host.watcher.follow(this.#tokens.tenant, this.#tokens.name)
    return unlessAborted(following, signal).catch((error: unknown) => {
      // It may yet begin, for nobody.
      following.then(
        (changes) => changes.close(),
        () => {},
      )
      throw error
    })
  }

  async #end(verb: 'seal' | 'cancel'): Promise<void> {
    await this.#host.ready()
    const state = await endAction(this.#host.requests, { ...this.#tokens, verb })
    if (state === undefined) throw new UnknownActionError({ id: this.id })
    if (state === 'AGGREGATING') this.#host.onAggregating()
  }

  /** For what goes on for long, or changes something: it does not end with a restart of the store. */
  #known(options: { withStatistics?: boolean } = {}): Promise<FoundAction> {
    return repeatWhileUnavailable(() => this.#existing(options))
  }

  async #existing(options: { withStatistics?: boolean } = {}): Promise<FoundAction> {
    const found = await this.#read(options)
    if (!found) throw new UnknownActionError({ id: this.id })
    return found
  }

  async #read(options: { withStatistics?: boolean } = {}): Promise<FoundAction | undefined> {
    await this.#host.readable()
    const { tenant, name } = this.#tokens
    const [found] = await readActions(this.#host.requests, [`${tenant}:${name}`], options)
    return found
  }
}

/** As it was submitted, but for its delay: what it waited for is over. */
function toJob({ jobKey, record, payload }: ActionLetter): ActionJobInput {
  const { type, givenId, options, cost } = record
  const { delayMs, ...patience } = options
  // Its number, so that a repeated retry knows it again.
  return { type, id: givenId ?? `#${jobKey.split(':')[2]}`, payload, cost, ...patience }
}
