import { checkOptions, integer, oneOf, optional } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { ClosedError, InvalidOptionsError } from '../errors.ts'
import { queueKeys, type QueueKeys } from '../store/keys.ts'
import { type Level, levels, problemOfName } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import { Requests } from '../store/requests.ts'
import { finishAndClaim } from '../store/scripts/finish-and-claim.ts'
import { registerQueue } from '../store/scripts/register-queue.ts'
import { ClaimHandle, type ClaimedJob } from './claimed-job.ts'
import type { Job } from './job.ts'
import { decodeJobs } from './job.ts'
import type { Handler, JobContext } from './job-run.ts'
import type { Log } from './log.ts'
import { checkQueueOptions, declaredSettings, type ProcessOptions, type QueueOptions, type QueueSettings } from './queue-options.ts'
import { type JobInput, Packer } from './submission.ts'
import { Submitter, type SubmitSummary } from './submitter.ts'
import { WorkerPool } from './worker-pool.ts'
import type { Waker } from './waker.ts'

/** Many jobs: fields beside `jobs` are defaults for each of them. */
export interface BulkInput extends Omit<JobInput, 'payload' | 'id'> {
  jobs: Iterable<JobInput> | AsyncIterable<JobInput>
}

export interface SubmitOptions {
  /** A head start (negative) or handicap of the tenant in ms; it stays until it is changed. */
  basePriority?: number
  /** Instead of the queue's. */
  whenFull?: 'wait' | 'error'
}

export interface SubmittedJob {
  readonly id: string
  /** False: the id was known, and nothing was stored. */
  readonly isNew: boolean
}

/** Runs around every handler, for logging and tracing. `next` runs the rest; its result is the run's. */
export type Middleware = (job: Job, context: JobContext, next: () => Promise<unknown>) => Promise<unknown>

const allLevels = optional((value: unknown, path: string, report: (path: string, problem: string) => void) => {
  const isList = Array.isArray(value) && value.length > 0 && value.every((each) => levels.includes(each as Level))
  if (!isList) report(path, 'must be a list of high, normal and low')
  return value as readonly Level[]
})

const processRules = {
  concurrency: integer({ min: 1, max: 100_000, default: 10 }),
  timeoutMs: optional(integer({ min: 1, max: 86_400_000 })),
  maxRetries: optional(integer({ min: 0, max: 1_000 })),
  levels: allLevels,
}

const submitRules = {
  basePriority: optional(integer({ min: -1e12, max: 1e12 })),
  whenFull: optional(oneOf(['wait', 'error'])),
}

/** A named stream of work with its own limits and fairness. */
export class Queue {
  readonly name: string
  readonly #settings: QueueSettings
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #requests: Requests
  readonly #pool: WorkerPool
  readonly #middleware: Middleware[] = []
  #registered: Promise<void> | undefined
  #isClosed = false

  /** Made by `Sluice.queue`. */
  constructor(parts: {
    name: string
    options: QueueOptions | undefined
    prefix: string
    redis: Redis
    waker: Waker
    clock: Clock
    log: Log
    client: string
  }) {
    this.name = parts.name
    this.#settings = checkQueueOptions(parts.name, parts.options)
    this.#redis = parts.redis
    this.#keys = queueKeys(parts.prefix, parts.name, parts.client)
    // The pool's calls have their own numbers: a producer that waits must not hold them up.
    const register = (isAgain: boolean) => this.#register(isAgain)
    const poolKeys = queueKeys(parts.prefix, parts.name, `${parts.client}-pool`)
    const shared = { redis: parts.redis, register }
    this.#requests = new Requests({ ...shared, client: parts.client, keys: this.#keys })
    this.#pool = new WorkerPool({
      ...parts,
      queue: parts.name,
      settings: this.#settings,
      requests: new Requests({ ...shared, client: `${parts.client}-pool`, keys: poolKeys }),
    })
  }

  /** One job. Answers its id. */
  submit(job: JobInput & { jobs?: never }, options?: SubmitOptions): Promise<SubmittedJob>
  /** Any number of jobs from an iterable; they go out in chunks while it is read. */
  submit(jobs: BulkInput, options?: SubmitOptions): Promise<SubmitSummary>
  async submit(input: JobInput | BulkInput, options?: SubmitOptions): Promise<SubmittedJob | SubmitSummary> {
    this.#assertOpen()
    const chosen = checkOptions('submit', options, submitRules)
    const { whenFull = this.#settings.whenFull, basePriority } = chosen
    const { maxPending, maxPendingPerTenant } = this.#settings
    const submitter = new Submitter({
      requests: this.#requests,
      queue: this.name,
      whenFull,
      basePriority,
      maxPending: { queue: maxPending, tenant: maxPendingPerTenant },
      isClosed: () => this.#isClosed,
    })
    await this.#ready()
    return 'jobs' in input && input.jobs !== undefined
      ? this.#submitMany(submitter, input as BulkInput)
      : this.#submitOne(submitter, input as JobInput)
  }

  async #submitOne(submitter: Submitter, input: JobInput): Promise<SubmittedJob> {
    const packed = new Packer({}, this.#settings.maxPayloadBytes).pack(input, undefined, Date.now())
    const first = await submitter.one(packed)
    return { id: input.id ?? `${packed.level}:${packed.lane}:${first}:${packed.tenant}`, isNew: first !== '0' }
  }

  async #submitMany(submitter: Submitter, { jobs, ...defaults }: BulkInput): Promise<SubmitSummary> {
    const packer = new Packer(defaults, this.#settings.maxPayloadBytes)
    let index = 0
    try {
      if (Symbol.iterator in Object(jobs)) {
        for (const job of jobs as Iterable<JobInput>) {
          const pause = submitter.add(packer.pack(job, index++, Date.now()))
          if (pause) await pause
        }
      } else if (Symbol.asyncIterator in Object(jobs)) {
        for await (const job of jobs as AsyncIterable<JobInput>) {
          const pause = submitter.add(packer.pack(job, index++, Date.now()))
          if (pause) await pause
        }
      } else {
        throw new InvalidOptionsError('submit', [{ path: 'jobs', problem: 'must be an iterable or async iterable' }])
      }
    } catch (error) {
      await submitter.abandon()
      throw error
    }
    return submitter.finish()
  }

  /** Runs jobs of this type in this process, from now until `close`. */
  // biome-ignore lint/suspicious/noExplicitAny: the payload's type is the caller's word.
  process<Payload = any>(type: string, handler: Handler<Payload>, options?: ProcessOptions): void {
    this.#assertOpen()
    const problem = problemOfName(type)
    if (problem) throw new InvalidOptionsError('process', [{ path: 'type', problem }])
    if (typeof handler !== 'function') {
      throw new InvalidOptionsError('process', [{ path: 'handler', problem: 'must be a function' }])
    }
    const chosen = checkOptions(`process("${type}")`, options, processRules)
    this.#pool.add(
      type,
      {
        handler: this.#around(handler),
        timeoutMs: chosen.timeoutMs ?? this.#settings.jobTimeoutMs,
        maxRetries: chosen.maxRetries ?? this.#settings.maxRetries,
      },
      chosen.concurrency,
      chosen.levels ?? levels,
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

  /** Claims up to `wanted` jobs for a caller with a loop of its own. They are leased like any other. */
  async claim(wanted: number, options: { leaseMs?: number; levels?: readonly Level[] } = {}): Promise<ClaimedJob[]> {
    this.#assertOpen()
    const { leaseMs, levels: served } = checkOptions(
      'claim',
      { wanted, ...options },
      {
        wanted: integer({ min: 1, max: 1_000 }),
        leaseMs: integer({ min: 100, max: 86_400_000, default: this.#settings.leaseMs }),
        levels: allLevels,
      },
    )
    await this.#ready()
    const found: ClaimedJob[] = []
    for (;;) {
      const reply = await finishAndClaim(this.#requests, {
        wanted: wanted - found.length,
        levels: (served ?? levels).join(' '),
        leaseMs,
        idleForMs: 0,
        hasSuspect: false,
        finished: [],
      })
      for (const job of decodeJobs(reply.fence, reply.jobs)) {
        found.push(
          new ClaimHandle({ job, redis: this.#redis, requests: this.#requests, settings: this.#settings, leaseMs }),
        )
      }
      if (reply.word !== 'again' || found.length >= wanted) return found
    }
  }

  /** No new claims here; running jobs get `shutdownGraceMs`, what is left then goes back at once. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pool.close()
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new ClosedError(`The queue "${this.name}"`)
  }

  /** Registered once per process; again when the store turns out to have lost it. */
  #ready(): Promise<void> {
    this.#registered ??= this.#register(false).catch((error: unknown) => {
      this.#registered = undefined
      throw error
    })
    return this.#registered
  }

  async #register(isAgain: boolean): Promise<void> {
    const wasRegistered = isAgain && this.#registered !== undefined
    await registerQueue(this.#redis, this.#keys, declaredSettings(this.#settings), { isAgain: wasRegistered })
  }
}
