import { checkOptions, integer, oneOf, optional, text } from '../assert.ts'
import { type Clock, systemClock } from '../clock.ts'
import { ClosedError, InvalidOptionsError } from '../errors.ts'
import { type QueueKeys, queueKeys } from '../store/keys.ts'
import { defaultTenant, fromToken, type Level, levels, problemOfName, toToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import { Requests } from '../store/requests.ts'
import { type CancelReply, cancelJob } from '../store/scripts/cancel-job.ts'
import { changeSettings } from '../store/scripts/change-settings.ts'
import type { DueWork } from '../store/scripts/finish-and-claim.ts'
import { pauseQueue } from '../store/scripts/pause-queue.ts'
import { type QueueCounts, readCounts } from '../store/scripts/read-counts.ts'
import { addressOf } from '../store/scripts/read-job.ts'
import { readSettings } from '../store/scripts/read-settings.ts'
import { type RunNowReply, runDelayedJob } from '../store/scripts/run-delayed-job.ts'
import { unparkTenants } from '../store/scripts/unpark-tenants.ts'
import { readBusyTokens, readTenantTokens } from '../store/tenant-tokens.ts'
import { readWorkers, type WorkerView } from '../store/worker-list.ts'
import type { Action } from './actions/action.ts'
import type { ActionInput } from './actions/action-input.ts'
import { type ActionPage, Actions } from './actions/actions.ts'
import type { Aggregate, AggregateOptions } from './actions/aggregate.ts'
import { Aggregates } from './actions/aggregates.ts'
import { Duties } from './actions/duties.ts'
import type { TellWebhook } from './actions/duty-work.ts'
import { type AuditOptions, type AuditReport, audit } from './audit/audit.ts'
import { Auditor } from './audit/auditor.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { Claimer } from './claimer.ts'
import { CongestionControl } from './congestion-control.ts'
import { CongestionRecorder } from './congestion-recorder.ts'
import { DeadLetters } from './dead-letters.ts'
import { type DelayedJobFilter, type RunDelayedOptions, type RunDelayedSummary, runDelayed } from './delayed-jobs.ts'
import { type DrainOptions, waitUntilDrained } from './drain.ts'
import { EventFeed } from './event-feed.ts'
import { type EventsOptions, followEvents, type QueueEvent } from './events.ts'
import { whyJobWaits, whyTenantWaits } from './explain/explain.ts'
import type { Explanation } from './explain/explanation.ts'
import { type ChangeableSettings, checkChange, type QueueView, settingsOf } from './fairness.ts'
import type { IdlePace } from './idle-pace.ts'
import { type BulkInput, Intake, type SubmitOptions, type SubmittedJob } from './intake.ts'
import type { Job } from './job.ts'
import type { Handler, JobContext } from './job-run.ts'
import { type JobView, viewJob } from './job-view.ts'
import { LimitControl } from './limit-control.ts'
import type { Log } from './log.ts'
import { orAborted } from './or-aborted.ts'
import { type QueueOverview, readOverview } from './overview.ts'
import { QueueFigures } from './queue-figures.ts'
import {
  checkQueueOptions,
  type ProcessOptions,
  processRules,
  type QueueOptions,
  type QueueSettings,
  servedLevels,
} from './queue-options.ts'
import { Registration } from './registration.ts'
import { RunEnds } from './run-ends.ts'
import { Schedules } from './schedules/schedules.ts'
import { Ticker } from './schedules/ticker.ts'
import type { JobInput } from './submission.ts'
import type { SubmitSummary } from './submitter.ts'
import { TenantControl, type TenantView } from './tenant-control.ts'
import type { Waker } from './waker.ts'
import { WorkerPool } from './worker-pool.ts'

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
  readonly requests: Requests
  readonly redis: Redis
  readonly settings: QueueSettings
}

export let insideOf: (queue: Queue) => QueueInside

const nameRule = optional((value: unknown, path: string, report: (path: string, problem: string) => void) => {
  const problem = problemOfName(value)
  if (problem) report(path, problem)
  return value as string
})

const explainRules = {
  tenant: nameRule,
  action: nameRule,
  // A generated id holds the names of a lane and a tenant.
  job: optional(text({ maxLength: 1_024 })),
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
  readonly #settings: QueueSettings
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #recorder: CongestionRecorder
  readonly #registration: Registration
  readonly #requests: Requests
  readonly #intake: Intake
  readonly #claimer: Claimer
  readonly #actions: Actions
  readonly #aggregates: Aggregates
  readonly #duties: Duties
  readonly #ticker: Ticker
  readonly #auditor: Auditor
  readonly #pool: WorkerPool
  readonly #feed: EventFeed
  readonly #middleware: Middleware[] = []
  readonly #figures = new QueueFigures()
  readonly #ends = new RunEnds()
  #stopped: Promise<unknown> | undefined
  #isClosed = false

  static {
    insideOf = (queue) => ({
      figures: queue.#figures,
      ends: queue.#ends,
      requests: queue.#requests,
      redis: queue.#redis,
      settings: queue.#settings,
    })
  }

  /** Made by `Sluice.queue`. */
  constructor(parts: {
    name: string
    options: QueueOptions | undefined
    prefix: string
    redis: Redis
    waker: Waker
    pace: IdlePace
    clock: Clock
    log: Log
    client: string
    tellWebhook: TellWebhook | undefined
    /** Looks at what others have declared, and declares nothing: its options only say where the queue is. */
    isObserver?: boolean
  }) {
    this.name = parts.name
    this.#settings = checkQueueOptions(parts.name, parts.options)
    const { group } = this.#settings.limits.shared[0] ?? { group: parts.name }
    this.#redis = parts.redis
    this.#keys = queueKeys(parts.prefix, parts.name, parts.client, group)
    this.#feed = new EventFeed(parts.redis, this.#keys)
    this.#registration = new Registration({
      ...parts,
      group,
      queue: parts.name,
      keys: this.#keys,
      settings: this.#settings,
      isObserver: parts.isObserver ?? false,
      declare: async (hasForgotten) => {
        await this.#aggregates.declare()
        if (hasForgotten) this.schedules.declareAgain()
      },
    })
    const ready = () => this.#registration.ready()
    // The pool's calls have their own numbers: a producer that waits must not hold them up.
    const poolKeys = queueKeys(parts.prefix, parts.name, `${parts.client}-pool`, group)
    const shared = { redis: parts.redis, register: (isAgain: boolean) => this.#registration.register(isAgain) }
    this.#requests = new Requests({ ...shared, client: parts.client, keys: this.#keys })
    this.#intake = new Intake({
      queue: parts.name,
      clock: parts.clock,
      requests: this.#requests,
      settings: this.#settings,
      figures: this.#figures,
      isClosed: () => this.#isClosed,
      ready,
    })
    this.#claimer = new Claimer({
      ...parts,
      requests: this.#requests,
      settings: this.#settings,
      figures: this.#figures,
      ends: this.#ends,
      onDue: this.#onDue,
      recordCongestion: () => this.#recorder.record(),
    })
    this.limits = new LimitControl({ ...parts, requests: this.#requests, group, ready })
    const { maxPayloadBytes } = this.#settings
    this.deadLetters = new DeadLetters({ ...parts, keys: this.#keys, requests: this.#requests, maxPayloadBytes })
    this.schedules = new Schedules({
      requests: this.#requests,
      maxPayloadBytes: this.#settings.maxPayloadBytes,
      pace: parts.pace,
      log: parts.log,
      ready,
      submit: (job) => this.submit(job, { whenFull: 'error' }),
    })
    this.congestion = new CongestionControl({
      redis: parts.redis,
      keys: this.#keys,
      requests: this.#requests,
      ready,
    })
    this.#recorder = new CongestionRecorder({
      queue: parts.name,
      store: () => this.congestion.record(),
      log: parts.log,
    })
    this.#actions = new Actions({
      ...parts,
      queue: parts.name,
      keys: this.#keys,
      requests: this.#requests,
      maxPayloadBytes: this.#settings.maxPayloadBytes,
      ready,
      submitter: (options) => this.#intake.submitter(options),
      onAggregating: () => this.#duties.look(),
      counted: (submit) => this.#intake.counted(submit),
    })
    const dutyKeys = queueKeys(parts.prefix, parts.name, `${parts.client}-duties`, group)
    const dutyRequests = new Requests({ ...shared, client: `${parts.client}-duties`, keys: dutyKeys })
    this.#aggregates = new Aggregates({ ...parts, requests: dutyRequests, onDue: () => this.#duties.lookAnew() })
    this.#ticker = new Ticker({ ...parts, requests: dutyRequests })
    // Also where a test moves the time: it would be at it all the while.
    const ofAudit = { requests: dutyRequests, settings: this.#settings.audit, clock: systemClock }
    this.#auditor = new Auditor({ ...parts, ...ofAudit })
    const { leaseMs, shutdownGraceMs: graceMs, unknownTypeMs } = this.#settings
    this.#duties = new Duties({
      ...parts,
      ...{ leaseMs, graceMs, unknownTypeMs },
      actions: this.#actions,
      aggregates: this.#aggregates,
      requests: dutyRequests,
    })
    this.#pool = new WorkerPool({
      ...parts,
      queue: parts.name,
      settings: this.#settings,
      requests: new Requests({ ...shared, client: `${parts.client}-pool`, keys: poolKeys }),
      onDue: this.#onDue,
      recordCongestion: () => this.#recorder.record(),
      figures: this.#figures,
      ends: this.#ends,
    })
  }

  /** A claim says that there is something to do besides jobs. */
  readonly #onDue = ({ hasDuties, hasTicks }: DueWork): void => {
    if (hasDuties) this.#duties.look()
    if (hasTicks) this.#ticker.look()
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
    const chosen = this.#intake.check(options)
    const work = this.#intake.counted<SubmittedJob | SubmitSummary | Action>(async () => {
      // Whatever it is: what is no object is refused as a job.
      const { jobs } = Object(input) as Partial<BulkInput>
      if (jobs === undefined) return this.#intake.one(input as JobInput, chosen)
      if ('tenant' in input) return this.#actions.submit(input as ActionInput, chosen)
      return this.#intake.many(input as BulkInput, chosen)
    })
    return orAborted(work, chosen.signal)
  }

  /** The action of this name and tenant, whether it exists or not. */
  action(name: string, options: { tenant: string }): Action {
    return this.#actions.open(name, options.tenant)
  }

  /** A page of actions, newest first. */
  actions(page: { tenant?: string; cursor?: string; limit?: number } = {}): Promise<ActionPage> {
    return this.#actions.list(page)
  }

  /**
   * Makes one result of all job results of an action whose `type` this is, when its last job has ended; the action completes
   * with it. Actions made from now on keep the results it needs. It runs in a process that has called this, whether that
   * runs jobs or not, under a lease: after a crash it runs again.
   */
  async aggregate(type: string, aggregate: Aggregate, options?: AggregateOptions): Promise<void> {
    this.#assertOpen()
    this.#aggregates.add(type, aggregate, options)
    this.#duties.serve()
    await this.#registration.ready()
    await this.#aggregates.declare()
  }

  /** Runs jobs of this type in this process, from now until `stop` or `close`. */
  // biome-ignore lint/suspicious/noExplicitAny: the payload's type is the caller's word.
  process<Payload = any>(type: string, handler: Handler<Payload>, options?: ProcessOptions): void {
    this.#assertOpen()
    if (this.#stopped) throw new ClosedError(`The queue "${this.name}"`)
    const problem = problemOfName(type)
    if (problem) throw new InvalidOptionsError('process', [{ path: 'type', problem }])
    if (typeof handler !== 'function') {
      throw new InvalidOptionsError('process', [{ path: 'handler', problem: 'must be a function' }])
    }
    const chosen = checkOptions(`process("${type}")`, options, processRules)
    this.#duties.serve()
    this.#auditor.serve()
    this.#pool.add(
      type,
      {
        handler: this.#around(handler),
        timeoutMs: chosen.timeoutMs ?? this.#settings.jobTimeoutMs,
        maxRetries: chosen.maxRetries ?? this.#settings.maxRetries,
        upstream: chosen.upstream,
      },
      {
        concurrency: chosen.concurrency,
        isConcurrencyGiven: options?.concurrency !== undefined,
        levels: chosen.levels ?? levels,
      },
    )
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
        leaseMs: integer({ min: 100, max: 86_400_000, default: this.#settings.leaseMs }),
        levels: servedLevels,
      },
    )
    await this.#registration.ready()
    this.#duties.serve()
    this.#auditor.serve()
    return this.#claimer.claim({ wanted, leaseMs, levels: served ?? levels })
  }

  /** What is known of a job. A given id is known within its action, or else its tenant; a generated one needs neither. */
  async job(id: string, options: JobOwner = {}): Promise<JobView | undefined> {
    await this.#registration.ready()
    return viewJob(this.#requests, addressOf(id, options.tenant ?? defaultTenant, options.action), id)
  }

  /**
   * Cancels a job: a waiting one at once, a running one through its signal (`canceling`: it ends as canceled unless it
   * succeeds first). `ended` and `unknown` change nothing.
   */
  async cancel(id: string, options: JobOwner = {}): Promise<CancelReply> {
    await this.#registration.ready()
    return cancelJob(this.#requests, addressOf(id, options.tenant ?? defaultTenant, options.action))
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
    await this.#registration.ready()
    if (job === undefined) return whyTenantWaits(this.#requests, toToken(tenant ?? defaultTenant))
    return whyJobWaits(this.#requests, addressOf(job, tenant ?? defaultTenant, action), job)
  }

  /** Makes a delayed job due now: the next claim puts it at the front of its lane. */
  async runNow(id: string, options: JobOwner = {}): Promise<RunNowReply> {
    await this.#registration.ready()
    return runDelayedJob(this.#requests, addressOf(id, options.tenant ?? defaultTenant, options.action))
  }

  /** Makes all delayed jobs that fit due now, in bounded steps; `{}` means all. */
  async runDelayed(filter: DelayedJobFilter, options: RunDelayedOptions = {}): Promise<RunDelayedSummary> {
    await this.#registration.ready()
    return runDelayed(this.#requests, filter, options)
  }

  /** Puts all parked tenants back in line; their limits are asked again with their turns. Answers how many they are. */
  async unpark(): Promise<number> {
    await this.#registration.ready()
    return unparkTenants(this.#requests)
  }

  /**
   * Resolves when nothing waits, is delayed or runs, of the whole queue or of one tenant. It stops nobody from submitting: stop
   * the producers first. Rejects with the reason of the signal when that comes first.
   */
  async drain(options: DrainOptions = {}): Promise<void> {
    await this.#registration.ready()
    await waitUntilDrained(this, options)
  }

  /**
   * Looks whether every job is in exactly one place and every count is what it counts, in bounded steps while the queue runs,
   * and puts right what differs.
   */
  async audit(options: AuditOptions = {}): Promise<AuditReport> {
    await this.#registration.ready()
    return audit(this.#requests, options)
  }

  /** Counts over the whole queue. */
  async counts(): Promise<QueueCounts> {
    await this.#registration.ready()
    return readCounts(this.#requests)
  }

  /** Processes that hold jobs of it or wait for some, the busiest first. */
  async workers(): Promise<WorkerView[]> {
    await this.#registration.ready()
    return readWorkers(this.#redis, this.#keys)
  }

  /** The queue at one moment, in a bounded number of reads: counts, backlog, limits, workers, and tenants that matter now. */
  async overview(options: { tenants?: number } = {}): Promise<QueueOverview> {
    await this.#registration.ready()
    const busyTokens = (most: number) => readBusyTokens(this.#redis, this.#keys, most)
    const { limits, congestion } = this
    return readOverview(
      {
        ...{ limits, congestion, busyTokens },
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
    await this.#registration.ready()
    const { values, ...pauses } = await readSettings(this.#requests)
    return { name: this.name, ...settingsOf(values), ...pauses }
  }

  /**
   * What happens from now on, or since an event of which the caller knows the id: failures, dead letters, stalls, ends of
   * actions, parked tenants, changed limits. All who follow a queue in one process share one connection.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<QueueEvent, void, undefined> {
    await this.#registration.ready()
    yield* followEvents({ redis: this.#redis, keys: this.#keys, feed: this.#feed }, options)
  }

  /** One tenant: settings, pause, limits, and how it stands. */
  tenant(name: string): TenantControl {
    return new TenantControl(name, this.#requests)
  }

  /** Tenants that have work or are paused, in no order. */
  async *tenants(): AsyncGenerator<TenantView> {
    await this.#registration.ready()
    for await (const token of readTenantTokens(this.#redis, this.#keys)) yield this.tenant(fromToken(token)).view()
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
    await this.#registration.ready()
    await pauseQueue(this.#requests, { level, isPaused })
  }

  /**
   * Changes how the queue shares and how it takes its backlog, on every worker at once; it stays changed until `change`
   * says otherwise.
   */
  async change(settings: ChangeableSettings): Promise<void> {
    const values = checkChange(this.name, settings)
    await this.#registration.ready()
    await changeSettings(this.#requests, { values })
  }

  /**
   * No job starts in this process any more; running ones get `shutdownGraceMs`, what is left then goes back at once. For a
   * process that is to end but still answers requests: submitting, looking and `claim` go on until `close`.
   */
  async stop(): Promise<void> {
    this.#stopped ??= Promise.all([
      this.#pool.close(),
      this.#aggregates.close(),
      this.#duties.close(),
      this.#ticker.close(),
      this.#auditor.close(),
      this.#recorder.settled(),
    ])
    await this.#stopped
  }

  /** `stop`, and no more submits. Whoever still waits for an action, or its progress, gets a ClosedError. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.schedules.close()
    await this.stop()
    this.#actions.close()
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ClosedError(`The queue "${this.name}"`)
  }
}
