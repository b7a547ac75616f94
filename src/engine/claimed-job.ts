import type { Clock } from '../clock.ts'
import { LeaseLostError } from '../errors.ts'
import type { Pushback } from '../limits/upstream-answer.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import {
  type DueWork,
  type Finish,
  type FinishedInAction,
  type FinishedJob,
  finishAndClaim,
} from '../store/scripts/finish-and-claim.ts'
import { renewLeases } from '../store/scripts/renew-leases.ts'
import { finishedJob, finishOf, toldOf } from './finish.ts'
import type { Grant } from './grant.ts'
import type { GrantedBy, Job, LeasedJob } from './job.ts'
import { type Answer, Lessons } from './lesson.ts'
import { type RunResult, resultOfThrow } from './outcome.ts'
import type { QueueFigures } from './queue-figures.ts'
import type { QueueSettings } from './queue-options.ts'
import type { Recovery } from './recovery.ts'
import type { RunEnds } from './run-ends.ts'

/** A job claimed by a caller with a loop of its own. It is the caller's until the lease runs out; `renew` prolongs it. */
export interface ClaimedJob<Payload = unknown> extends Job<Payload> {
  /** Larger for every claim: give it to whatever must not be written by a worker that has lost its job. */
  readonly fence: string
  /**
   * Await it just before each call to the upstream: it makes sure that the limits allow a call *now*. The job's own grant is
   * used up first, if it is not too old; further calls are charged.
   */
  admit(): Promise<void>
  /** Which member of a pool granted the job, by the limit's name: use that one's token. */
  readonly grant: GrantedBy
  /**
   * Tells the limits what an answer of the upstream says, with the job's end: what is left of its quota, or that it pushed
   * back. Answers the pushback, if it is one.
   */
  learn(answer: Answer): Pushback | undefined
  /** @param value - What its action keeps of it, if it keeps results. */
  succeed(value?: unknown): Promise<void>
  /**
   * Retried, or a dead letter when it has failed too often. What a handler may throw counts as it does there: a
   * `PermanentError` as `discard`, a `ThrottledError` as `throttle`.
   */
  fail(error: unknown): Promise<void>
  /** It will not succeed: a dead letter now, without another try. */
  discard(reason: string): Promise<void>
  /** The upstream pushed back: comes again without costing a retry. */
  throttle(options?: { retryAfterMs?: number | undefined }): Promise<void>
  /** Back to the front of its lane, for someone else. */
  release(): Promise<void>
  /** The lease of the whole claim starts anew. */
  renew(): Promise<void>
}

/** All of them reject with a LeaseLostError when the job is no longer the caller's; nothing has changed then. */
export class ClaimHandle implements ClaimedJob {
  readonly #job: LeasedJob
  readonly #redis: Redis
  readonly #requests: Requests
  readonly #settings: QueueSettings
  readonly #leaseMs: number
  readonly #grant: Grant
  readonly #onDue: (due: DueWork) => void
  readonly #figures: QueueFigures
  readonly #ends: RunEnds
  readonly #recovery: Recovery
  readonly #clock: Clock
  readonly #claimedAt: number
  readonly #lessons = new Lessons()

  constructor(options: {
    clock: Clock
    job: LeasedJob
    grant: Grant
    redis: Redis
    requests: Requests
    settings: QueueSettings
    leaseMs: number
    /** Something is due besides jobs. */
    onDue: (due: DueWork) => void
    figures: QueueFigures
    ends: RunEnds
    recovery: Recovery
  }) {
    this.#clock = options.clock
    this.#claimedAt = options.clock.now()
    this.#job = options.job
    this.#redis = options.redis
    this.#requests = options.requests
    this.#settings = options.settings
    this.#leaseMs = options.leaseMs
    this.#grant = options.grant
    this.#onDue = options.onDue
    this.#figures = options.figures
    this.#ends = options.ends
    this.#recovery = options.recovery
    this.#figures.started(this.#job, this.#clock.date())
  }

  get key() {
    return this.#job.key
  }
  get id() {
    return this.#job.id
  }
  get tenant() {
    return this.#job.tenant
  }
  get type() {
    return this.#job.type
  }
  get payload() {
    return this.#job.payload
  }
  get level() {
    return this.#job.level
  }
  get lane() {
    return this.#job.lane
  }
  get action() {
    return this.#job.action
  }
  get attempt() {
    return this.#job.attempt
  }
  get cost() {
    return this.#job.cost
  }
  get grant() {
    return this.#job.grant
  }
  get createdAt() {
    return this.#job.createdAt
  }
  get fence() {
    return this.#job.fence
  }

  admit(): Promise<void> {
    return this.#grant.admit()
  }

  learn(answer: Answer): Pushback | undefined {
    return this.#lessons.learn(answer, this.#clock.date())
  }

  succeed(value?: unknown): Promise<void> {
    return this.#finish({ kind: 'succeeded', value })
  }

  fail(error: unknown): Promise<void> {
    return this.#finish(resultOfThrow(error))
  }

  discard(reason: string): Promise<void> {
    return this.#finish({ kind: 'discarded', error: new Error(reason) })
  }

  throttle(options: { retryAfterMs?: number | undefined } = {}): Promise<void> {
    return this.#finish({ kind: 'throttled', retryAfterMs: options.retryAfterMs })
  }

  release(): Promise<void> {
    return this.#tell({ outcome: 'released' })
  }

  async renew(): Promise<void> {
    const { client, keys } = this.#requests
    const renewal = { client, leaseMs: this.#leaseMs, fences: [this.fence] }
    const lost = await this.#recovery.watch(() => renewLeases(this.#redis, keys, renewal))
    if (lost.length > 0) throw this.#lost()
  }

  #finish(result: RunResult): Promise<void> {
    if (result.kind === 'throttled') this.#lessons.pushedBack(result.retryAfterMs)
    const finish = finishOf(this.#job, result, this.#settings)
    const durationMs = this.#clock.now() - this.#claimedAt
    this.#figures.ended(this.type, finish, durationMs)
    const measured = { durationMs, endedAt: this.#clock.date() }
    return this.#tell(finish, result, toldOf(this.#job, result, finish, { ...measured, ...this.#settings }))
  }

  async #tell(finish: Finish, result?: RunResult, action?: FinishedInAction): Promise<void> {
    const finished = [finishedJob(this.#job, finish, action, this.#lessons.lessonFor(undefined))]
    if (result) this.#ends.note(finished[0] as FinishedJob, this.#job, result)
    const reply = await this.#recovery.watch(() =>
      finishAndClaim(this.#requests, {
        wanted: 0,
        levels: '',
        leaseMs: this.#leaseMs,
        idleForMs: 0,
        hasSuspect: false,
        // The next claim does, if it may.
        takesBackUntilUs: 0,
        finished,
      }),
    )
    this.#onDue(reply)
    this.#ends.stored(finished, reply.stale)
    if (reply.stale.length > 0) throw this.#lost()
  }

  #lost(): LeaseLostError {
    return new LeaseLostError({ jobId: this.id, fence: this.fence })
  }
}
