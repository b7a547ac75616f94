import { checkOptions, integer, oneOf, optional, text } from '../assert.ts'
import { ClosedError, InvalidOptionsError } from '../errors.ts'
import type { QueueKeys } from '../store/keys.ts'
import { defaultTenant, fromToken, type Level, levels, nameRule, problemOfName, toToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { type CancelReply, cancelJob } from '../store/scripts/cancel-job.ts'
import { changeSettings } from '../store/scripts/change-settings.ts'
import { pauseQueue } from '../store/scripts/pause-queue.ts'
import { type QueueCounts, readCounts } from '../store/scripts/read-counts.ts'
import { addressOf, type JobAddress } from '../store/scripts/read-job.ts'
import { readSettings } from '../store/scripts/read-settings.ts'
import { type RunNowReply, runDelayedJob } from '../store/scripts/run-delayed-job.ts'
import { unparkTenants } from '../store/scripts/unpark-tenants.ts'
import { readBusyTokens, readTenantTokens } from '../store/tenant-tokens.ts'
import { readWorkers, type WorkerView } from '../store/worker-list.ts'
import type { Action } from './actions/action.ts'
import type { ActionInput } from './actions/action-input.ts'
import type { ActionPage } from './actions/actions.ts'
import type { Aggregate, AggregateOptions } from './actions/aggregate.ts'
import { type AuditOptions, type AuditReport, audit } from './audit/audit.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { CongestionControl } from './congestion-control.ts'
import type { DeadLetters } from './dead-letters.ts'
import { type DelayedJobFilter, type RunDelayedOptions, type RunDelayedSummary, runDelayed } from './delayed-jobs.ts'
import { type DrainOptions, waitUntilDrained } from './drain.ts'
import type { EventFeed } from './event-feed.ts'
import { type EventsOptions, followEvents, type QueueEvent } from './events.ts'
import { whyJobWaits, whyTenantWaits } from './explain/explain.ts'
import type { Explanation } from './explain/explanation.ts'
import { type ChangeableSettings, checkChange, type QueueView, settingsOf } from './fairness.ts'
import type { BulkInput, SubmitOptions, SubmittedJob } from './intake.ts'
import type { Job } from './job.ts'
import type { Handler, JobContext } from './job-run.ts'
import { type JobView, viewJob } from './job-view.ts'
import type { LimitControl } from './limit-control.ts'
import { type QueueOverview, readOverview } from './overview.ts'
import type { QueueFigures } from './queue-figures.ts'
import { checkUpstream, type ProcessOptions, processRules, type QueueSettings, servedLevels } from './queue-options.ts'
import { makeQueueParts, type QueueMaking, type QueueParts } from './queue-parts.ts'
import type { Registration } from './registration.ts'
import type { RunEnds } from './run-ends.ts'
import { insideOfSchedules, type Schedules } from './schedules/schedules.ts'
import type { JobInput } from './submission.ts'
import { SUBMIT_GRACE_MS, type SubmitSummary } from './submitter.ts'
import { TenantControl, type TenantView } from './tenant-control.ts'
import { unlessAborted } from './unless-aborted.ts'

/** Where a given id is known. */
export interface JobOwner {
  /** @default 'default' */
  tenant?: string
  /** The action it was submitted with. */
  action?: string
}

/** Runs around every handler, for logging and tracing. `next` runs the rest; its result is the run's. */
export type Middleware = (job: Job, context: JobContext, next: () => Promise<unknown>) => Promise<unknown>

/** What a queue is made of, for parts of this package that watch it. */
export interface QueueInside {
  readonly figures: QueueFigures
  readonly ends: RunEnds
  readonly feed: EventFeed
  readonly requests: Requests
  readonly redis: Redis
  readonly keys: QueueKeys
  /** What the queue waits for before it is used. */
  readonly registration: Pick<Registration, 'ready' | 'readable'>
  readonly settings: QueueSettings
}

export let insideOf: (queue: Queue) => QueueInside

const ownerRules = { tenant: optional(nameRule), action: optional(nameRule) }

const explainRules = {
  ...ownerRules,
  // A generated id holds the names of a lane and a tenant.
  job: optional(text({ maxLength: 1_024 })),
}

function addressOfOwned(subject: string, id: string, options: JobOwner): JobAddress {
  const { tenant, action } = checkOptions(subject, options, ownerRules)
  return addressOf(id, tenant ?? defaultTenant, action)
}

/** A named stream of work with its own limits and fairness. */
export class Queue {
  readonly name: string
  /** Limits: change and status. */
  readonly limits: LimitControl
  /** Jobs that will not be tried again by themselves. */
  readonly deadLetters: DeadLetters
  /** Repeating jobs. */
  readonly schedules: Schedules
  /** What backlogs mean in time. */
  readonly congestion: CongestionControl
  readonly #parts: QueueParts
  readonly #middleware: Middleware[] = []
  #stopped: Promise<unknown> | undefined
  #isClosed = false

  static {
    insideOf = (queue) => queue.#parts
  }

  /** Made by `Sluice.queue`. */
  constructor(given: QueueMaking) {
    this.name = given.name
    this.#parts = makeQueueParts(given, {
      submit: (job, options) => this.submit(job, options),
      isClosed: () => this.#isClosed,
    })
    this.limits = this.#parts.limits
    this.deadLetters = this.#parts.deadLetters
    this.schedules = this.#parts.schedules
    this.congestion = this.#parts.congestion
  }

  /** One job. Answers its id. */
  submit(job: JobInput & { jobs?: never }, options?: SubmitOptions): Promise<SubmittedJob>
  /** Jobs of one tenant from an iterable of any length: a bulk action. Answers it when they are all stored. */
  submit(action: ActionInput, options?: SubmitOptions): Promise<Action>
  /** Any number of jobs from an iterable, each with its tenant; they go out in chunks while it is read. */
  submit(jobs: BulkInput, options?: SubmitOptions): Promise<SubmitSummary>
  async submit(
    input: JobInput | BulkInput | ActionInput,
    options?: SubmitOptions,
  ): Promise<SubmittedJob | SubmitSummary | Action> {
    this.#assertOpen()
    const chosen = this.#parts.intake.check(options)
    const work = this.#parts.intake.counted<SubmittedJob | SubmitSummary | Action>(async () => {
      // Whatever it is: what is no object is refused as a job.
      const { jobs } = Object(input) as Partial<BulkInput>
      if (jobs === undefined) return this.#parts.intake.one(input as JobInput, chosen)
      // Also where it is undefined, which is refused: an action whose tenant is missing is not to run as the default's.
      if ('tenant' in input) return this.#parts.actions.submit(input as ActionInput, chosen)
      return this.#parts.intake.many(input as BulkInput, chosen)
    })
    return unlessAborted(work, chosen.signal, SUBMIT_GRACE_MS)
  }

  /** The action of this name and tenant, whether it exists or not. */
  action(name: string, options: { tenant: string }): Action {
    return this.#parts.actions.open(name, options.tenant)
  }

  /** A page of actions, newest first. */
  actions(page: { tenant?: string; cursor?: string; limit?: number } = {}): Promise<ActionPage> {
    return this.#parts.actions.list(page)
  }

  /**
   * Makes one result of all job results of an action whose `type` this is, when its last job has ended; the action completes
   * with it. Actions made from now on keep the results it needs. It runs in a process that has called this, whether that
   * runs jobs or not, until `stop` or `close`, under a lease: after a crash it runs again.
   */
  async aggregate(type: string, aggregate: Aggregate, options?: AggregateOptions): Promise<void> {
    this.#assertServing()
    this.#parts.aggregates.add(type, aggregate, options)
    this.#parts.duties.serve()
    await this.#parts.registration.ready()
    await this.#parts.aggregates.declare()
  }

  /** Runs jobs of this type in this process, from now until `stop` or `close`. */
  // biome-ignore lint/suspicious/noExplicitAny: the payload's type is the caller's word.
  process<Payload = any>(type: string, handler: Handler<Payload>, options?: ProcessOptions): void {
    this.#assertServing()
    const problem = problemOfName(type)
    if (problem) throw new InvalidOptionsError('process', [{ path: 'type', problem }])
    if (typeof handler !== 'function') {
      throw new InvalidOptionsError('process', [{ path: 'handler', problem: 'must be a function' }])
    }
    const chosen = checkOptions(`process("${type}")`, options, processRules, checkUpstream(this.#parts.settings.limits))
    this.#parts.pool.add(
      type,
      {
        handler: this.#around(handler),
        timeoutMs: chosen.timeoutMs ?? this.#parts.settings.jobTimeoutMs,
        isTimeoutGiven: chosen.timeoutMs !== undefined,
        maxRetries: chosen.maxRetries ?? this.#parts.settings.maxRetries,
        upstream: chosen.upstream,
      },
      {
        concurrency: chosen.concurrency,
        isConcurrencyGiven: options?.concurrency !== undefined,
        levels: chosen.levels ?? levels,
      },
    )
    this.#parts.duties.serve()
    this.#parts.auditor.serve()
  }

  /** Adds middleware around the handlers registered after it. */
  use(middleware: Middleware): void {
    this.#middleware.push(middleware)
  }

  #around(handler: Handler): Handler {
    return this.#middleware.reduceRight<Handler>(
      (inner, middleware) => (job, context) => middleware(job, context, async () => inner(job, context)),
      handler,
    )
  }

  /**
   * Claims up to `wanted` jobs for a caller with a loop of its own. They are leased like any other; before each call to an
   * upstream with limits the caller awaits `job.admit()`.
   */
  async claim(wanted: number, options: { leaseMs?: number; levels?: readonly Level[] } = {}): Promise<ClaimedJob[]> {
    this.#assertOpen()
    const { leaseMs, levels: served } = checkOptions(
      'claim',
      { wanted, ...options },
      {
        wanted: integer({ min: 1, max: 1_000 }),
        leaseMs: integer({ min: 100, max: 86_400_000, default: this.#parts.settings.leaseMs }),
        levels: servedLevels,
      },
    )
    await this.#parts.registration.ready()
    this.#parts.duties.serve()
    this.#parts.auditor.serve()
    return this.#parts.claimer.claim({ wanted, leaseMs, levels: served ?? levels })
  }

  /** What is known of a job. A given id is known within its action, or else its tenant; a generated one needs neither. */
  async job(id: string, options: JobOwner = {}): Promise<JobView | undefined> {
    const address = addressOfOwned('job', id, options)
    await this.#parts.registration.readable()
    return viewJob(this.#parts.requests, address, id)
  }

  /**
   * Cancels a job: a waiting one at once, a running one through its signal (`canceling`: it ends as cancelled unless it
   * succeeds first). `ended` and `unknown` change nothing.
   */
  async cancel(id: string, options: JobOwner = {}): Promise<CancelReply> {
    const address = addressOfOwned('cancel', id, options)
    await this.#parts.registration.ready()
    return cancelJob(this.#parts.requests, address)
  }

  /** Why no further job of a tenant runs now: every gate on the way with its values at this moment, and which binds. */
  explain(subject: { tenant: string; job?: never }): Promise<Explanation>
  /** The same for one job; undefined: there is no such job. A given id needs its tenant, and its action if it has one. */
  explain(subject: { job: string } & JobOwner): Promise<Explanation | undefined>
  async explain(subject: { job?: string } & JobOwner): Promise<Explanation | undefined> {
    const { job, tenant, action } = checkOptions('explain', subject, explainRules)
    if (job === undefined && tenant === undefined) {
      throw new InvalidOptionsError('explain', [{ path: 'tenant', problem: 'or job must be given' }])
    }
    await this.#parts.registration.readable()
    if (job === undefined) return whyTenantWaits(this.#parts.requests, toToken(tenant ?? defaultTenant))
    return whyJobWaits(this.#parts.requests, addressOf(job, tenant ?? defaultTenant, action), job)
  }

  /** Makes a delayed job due now: the next claim puts it at the front of its lane. */
  async runNow(id: string, options: JobOwner = {}): Promise<RunNowReply> {
    const address = addressOfOwned('runNow', id, options)
    await this.#parts.registration.ready()
    return runDelayedJob(this.#parts.requests, address)
  }

  /** Makes all delayed jobs that fit due now, in bounded steps; `{}` means all. */
  async runDelayed(filter: DelayedJobFilter, options: RunDelayedOptions = {}): Promise<RunDelayedSummary> {
    await this.#parts.registration.ready()
    return runDelayed(this.#parts.requests, filter, options)
  }

  /** Puts all parked tenants back in line; their limits are asked again with their turns. Answers how many they are. */
  async unpark(): Promise<number> {
    await this.#parts.registration.ready()
    return unparkTenants(this.#parts.requests)
  }

  /**
   * Resolves when nothing waits, is delayed or runs, of the whole queue or of one tenant. It stops nobody from submitting: stop
   * the producers first. Rejects with the reason of the signal when that comes first.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    await waitUntilDrained(this, options)
  }

  /**
   * Looks whether every job is in exactly one place and every count is what it counts, in bounded steps while the queue runs,
   * and puts right what differs.
   */
  async audit(options: AuditOptions = {}): Promise<AuditReport> {
    await this.#parts.registration.ready()
    return audit(this.#parts.requests, options)
  }

  /** Counts over the whole queue. */
  async counts(): Promise<QueueCounts> {
    await this.#parts.registration.readable()
    return readCounts(this.#parts.requests)
  }

  /** Processes that hold jobs of it or wait for some, the busiest first. */
  async workers(): Promise<WorkerView[]> {
    await this.#parts.registration.readable()
    return readWorkers(this.#parts.redis, this.#parts.keys)
  }

  /** The queue at one moment, in a bounded number of reads: counts, backlog, limits, workers, and tenants that matter now. */
  async overview(options: { tenants?: number } = {}): Promise<QueueOverview> {
    await this.#parts.registration.readable()
    const busyTokens = (most: number) => readBusyTokens(this.#parts.redis, this.#parts.keys, most)
    const { limits, congestion } = this
    return readOverview(
      {
        ...{ limits, congestion, busyTokens },
        date: () => this.#parts.clock.date(),
        view: () => this.view(),
        counts: () => this.counts(),
        workers: () => this.workers(),
        tenant: (name) => this.tenant(name),
      },
      options,
    )
  }

  /** How it shares and whether it is paused, changes made while running included. */
  async view(): Promise<QueueView> {
    await this.#parts.registration.readable()
    const { values, ...pauses } = await readSettings(this.#parts.requests)
    return { name: this.name, ...settingsOf(values), ...pauses }
  }

  /**
   * What happens from now on, or since an event of which the caller knows the id: failures, dead letters, stalls, ends of
   * actions, parked tenants, changed limits. All who follow a queue in one process share one connection.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<QueueEvent, void, undefined> {
    yield* followEvents(this.#parts, options)
  }

  /** One tenant: settings, pause, limits, and how it stands. */
  tenant(name: string): TenantControl {
    return new TenantControl(name, this.#parts.requests)
  }

  /** Tenants that have work or are paused, in no order. */
  async *tenants(): AsyncGenerator<TenantView> {
    await this.#parts.registration.readable()
    for await (const token of readTenantTokens(this.#parts.redis, this.#parts.keys))
      yield this.tenant(fromToken(token)).view()
  }

  /** No job of the queue, or of one level, starts until `resume`. */
  async pause(options: { level?: Level } = {}): Promise<void> {
    await this.#setPaused(options, true)
  }

  async resume(options: { level?: Level } = {}): Promise<void> {
    await this.#setPaused(options, false)
  }

  async #setPaused(options: { level?: Level }, isPaused: boolean): Promise<void> {
    const { level } = checkOptions('pause', options, { level: optional(oneOf(levels)) })
    await this.#parts.registration.ready()
    await pauseQueue(this.#parts.requests, { level, isPaused })
  }

  /**
   * Changes how the queue shares and how it takes its backlog, on every worker at once; it stays changed until `change`
   * says otherwise.
   */
  async change(settings: ChangeableSettings): Promise<void> {
    const values = checkChange(this.name, settings)
    await this.#parts.registration.ready()
    await changeSettings(this.#parts.requests, { values })
  }

  /**
   * No job starts in this process any more; running ones get `shutdownGraceMs`, what is left then goes back at once. For a
   * process that is to end but still answers requests: submitting, looking and `claim` go on until `close`.
   */
  async stop(): Promise<void> {
    this.#stopped ??= Promise.all([
      this.#parts.pool.close(),
      this.#parts.aggregates.close(),
      this.#parts.duties.close(),
      this.#parts.ticker.close(),
      this.#parts.auditor.close(),
      this.#parts.recorder.settled(),
    ])
    await this.#stopped
  }

  /** `stop`, and no more submits. Whoever still waits for an action, or its progress, gets a ClosedError. */
  async close(): Promise<void> {
    this.#isClosed = true
    insideOfSchedules(this.schedules).close()
    await this.stop()
    this.#parts.actions.close()
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ClosedError(`The queue "${this.name}"`)
  }

  #assertServing(): void {
    if (this.#stopped || this.#isClosed) throw new ClosedError(`The queue "${this.name}"`)
  }
}
