/**
 * Every error Sluice throws has a stable `code`, its data as fields, and a message that says what happened and what
 * to do. Tell them apart by `code` (or with `isSluiceError`), not by `instanceof`: two copies of the package in one
 * program have two sets of classes.
 */

/** All codes, with the one line that docs/errors.md explains further. */
export const errorCodes = {
  SLUICE_INVALID_OPTIONS: 'Options that cannot work; all problems are listed.',
  SLUICE_INVALID_JOB: 'A job that cannot be submitted; nothing of it was stored.',
  SLUICE_QUEUE_FULL: 'The queue or the tenant has as many waiting jobs as it may have.',
  SLUICE_STORE_UNAVAILABLE: 'Redis did not answer.',
  SLUICE_STORE_OUT_OF_MEMORY: 'Redis has reached its maxmemory and refuses to store more.',
  SLUICE_TOO_FEW_REPLICAS: 'A write is stored, but not on as many replicas as durability asks for.',
  SLUICE_UNSUPPORTED_REDIS: 'This Redis would lose work: too old, or it evicts keys.',
  SLUICE_STORE_FORMAT: 'What is stored of a queue is of a version of Sluice that this one does not work beside.',
  SLUICE_EMBEDDED_REDIS_MISSING: 'redis: "embedded" needs a redis-server binary, and there is none that runs.',
  SLUICE_OUTCOME_UNKNOWN: 'A call was repeated for so long that its request id may be forgotten.',
  SLUICE_LEASE_LOST: 'The job is no longer held by this claim.',
  SLUICE_CLOSED: 'Something was used after it was closed.',
  SLUICE_ACTION_CLOSED: 'Jobs were submitted to an action that is sealed or has ended.',
  SLUICE_ACTION_TAKEN: 'An action of that name was begun by somebody else.',
  SLUICE_UNKNOWN_ACTION: 'There is no such action, or not any more.',
  SLUICE_UNKNOWN_QUEUE: 'A queue was only to be looked at, and the store does not have it.',
  SLUICE_UNKNOWN_SCHEDULE: 'There is no schedule of that name.',
  SLUICE_WAITED_TOO_LONG: 'What was waited for did not happen in time; it may still.',
  SLUICE_JOB_TIMEOUT: 'A job ran longer than its time-out.',
  SLUICE_AGGREGATE_TIMEOUT: 'A custom aggregate took longer than its time-out.',
  SLUICE_PERMANENT: 'Thrown by a handler: do not try this job again.',
  SLUICE_THROTTLED: 'Thrown by a handler: the upstream pushed back.',
  SLUICE_UPSTREAM: 'The upstream could not be reached, was too slow, or said that it failed.',
  SLUICE_SCRIPT: 'A Lua script failed in a way that is a bug in Sluice or in the stored data.',
} as const

export type SluiceErrorCode = keyof typeof errorCodes

const BRAND = Symbol.for('sluice.error')

export abstract class SluiceError extends Error {
  abstract readonly code: SluiceErrorCode

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause })
    // From the class, so that it survives in stacks and logs of every subclass without repeating it.
    this.name = new.target.name
  }

  get [BRAND](): true {
    return true
  }
}

/** True for an error of this or any other copy of the package. */
export function isSluiceError(value: unknown): value is SluiceError {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === true
}

export interface OptionProblem {
  /** Where: `limits.tenant`, `redis.port`. */
  readonly path: string
  /** What is wrong with it: `must be a whole number of at least 1, not "a"`. */
  readonly problem: string
}

export class InvalidOptionsError extends SluiceError {
  readonly code = 'SLUICE_INVALID_OPTIONS'
  /** All problems at once, in the order of the options. */
  readonly problems: readonly OptionProblem[]

  /** @param subject - What the options are for: `queue "promotions"`. */
  constructor(subject: string, problems: readonly OptionProblem[]) {
    const lines = problems.map(({ path, problem }) => `${path} ${problem}`)
    super(
      lines.length === 1
        ? `Invalid options for ${subject}: ${lines[0]}`
        : `Invalid options for ${subject}:\n- ${lines.join('\n- ')}`,
    )
    this.problems = problems
  }
}

export class InvalidJobError extends SluiceError {
  readonly code = 'SLUICE_INVALID_JOB'
  /** Its place in what was submitted, from 0. */
  readonly index: number | undefined
  readonly jobId: string | undefined
  readonly problem: string

  constructor(data: { problem: string; index?: number | undefined; jobId?: string | undefined; cause?: unknown }) {
    const place = data.index === undefined ? '' : ` ${data.index}`
    const id = data.jobId === undefined ? '' : ` (id ${JSON.stringify(data.jobId)})`
    super(`Job${place}${id} cannot be submitted: ${data.problem}`, data)
    this.index = data.index
    this.jobId = data.jobId
    this.problem = data.problem
  }
}

export class QueueFullError extends SluiceError {
  readonly code = 'SLUICE_QUEUE_FULL'
  readonly queue: string
  /** Set when it is the bound of each tenant that is reached, not the queue's. */
  readonly tenant: string | undefined
  /** The bound that is reached: the queue's `maxPending` or, with a tenant, its `maxPendingPerTenant`. */
  readonly maxPending: number

  constructor(data: { queue: string; tenant?: string | undefined; maxPending: number }) {
    const [who, bound] =
      data.tenant === undefined
        ? [`Queue "${data.queue}"`, 'maxPending']
        : [`Tenant "${data.tenant}" of queue "${data.queue}"`, 'maxPendingPerTenant']
    super(
      `${who} is full: ${data.maxPending} jobs are waiting or delayed (${bound}). Submit later, let the producer wait, or raise ${bound}.`,
    )
    this.queue = data.queue
    this.tenant = data.tenant
    this.maxPending = data.maxPending
  }
}

/** `not-sent`: the command has not run and will not. `unknown`: it may have run, or may still run. */
export type StoreOutcome = 'not-sent' | 'unknown'

export class StoreUnavailableError extends SluiceError {
  readonly code = 'SLUICE_STORE_UNAVAILABLE'
  readonly outcome: StoreOutcome
  /** What the network or the server said. */
  readonly reason: string

  constructor(data: { reason: string; outcome: StoreOutcome; cause?: unknown }) {
    const outcome = data.outcome === 'not-sent' ? 'did not run and can be repeated' : 'may have run'
    super(`Redis is not available: ${data.reason}. The command ${outcome}.`, data)
    this.outcome = data.outcome
    this.reason = data.reason
  }
}

export class StoreOutOfMemoryError extends SluiceError {
  readonly code = 'SLUICE_STORE_OUT_OF_MEMORY'

  constructor(data?: { cause?: unknown }) {
    super(
      'Redis has reached its maxmemory and stores nothing new. Raise maxmemory or let the queues drain, then try again.',
      data,
    )
  }
}

export class TooFewReplicasError extends SluiceError {
  readonly code = 'SLUICE_TOO_FEW_REPLICAS'
  /** How many must have it. */
  readonly wanted: number
  /** How many had it in time. */
  readonly answered: number
  readonly timeoutMs: number

  constructor(data: { wanted: number; answered: number; timeoutMs: number }) {
    super(
      `Stored, but ${data.answered} of the ${data.wanted} replicas that durability asks for had it within ${data.timeoutMs} ms: it is lost if Redis fails now. Repeat the call, with the ids that the jobs had; what is stored already is not stored again.`,
    )
    this.wanted = data.wanted
    this.answered = data.answered
    this.timeoutMs = data.timeoutMs
  }
}

export class UnsupportedRedisError extends SluiceError {
  readonly code = 'SLUICE_UNSUPPORTED_REDIS'
  readonly version: string | undefined
  readonly maxmemoryPolicy: string | undefined

  constructor(data: { problem: string; version?: string | undefined; maxmemoryPolicy?: string | undefined }) {
    super(data.problem)
    this.version = data.version
    this.maxmemoryPolicy = data.maxmemoryPolicy
  }
}

export class StoreFormatError extends SluiceError {
  readonly code = 'SLUICE_STORE_FORMAT'
  readonly queue: string
  /** The number of the format that is stored, and of the one that this version writes. */
  readonly stored: number
  readonly known: number

  constructor(data: { queue: string; stored: number; known: number }) {
    const [what, todo] =
      data.stored > data.known
        ? ['a newer version of Sluice', 'upgrade this process as well']
        : [
            'an older version of Sluice',
            'let the queue run empty with that one and give it another name or prefix here',
          ]
    super(
      `The queue "${data.queue}" is stored by ${what} (format ${data.stored}, this one has ${data.known}), beside which this process must not work: ${todo}. The changelog says how.`,
    )
    this.queue = data.queue
    this.stored = data.stored
    this.known = data.known
  }
}

export class EmbeddedRedisMissingError extends SluiceError {
  readonly code = 'SLUICE_EMBEDDED_REDIS_MISSING'
  /** The command that installs it on this system. */
  readonly install: string

  constructor(data: { binary: string; install: string; cause?: unknown }) {
    super(`redis: 'embedded' needs ${data.binary}, which was not found. Install it with: ${data.install}`, data)
    this.install = data.install
  }
}

export class OutcomeUnknownError extends SluiceError {
  readonly code = 'SLUICE_OUTCOME_UNKNOWN'
  /** What was called: `submit-jobs`. */
  readonly operation: string

  constructor(data: { operation: string; cause?: unknown }) {
    super(
      `${data.operation} may or may not have happened: no answer came before its request id could be forgotten. Look at the state before repeating it; jobs with ids of their own can be submitted again.`,
      data,
    )
    this.operation = data.operation
  }
}

export class LeaseLostError extends SluiceError {
  readonly code = 'SLUICE_LEASE_LOST'
  readonly jobId: string | undefined
  readonly fence: string | undefined

  constructor(data?: { jobId?: string | undefined; fence?: string | undefined; cause?: unknown }) {
    const job = data?.jobId === undefined ? 'A job' : `Job ${JSON.stringify(data.jobId)}`
    super(
      `${job} is no longer held by this claim: its lease ran out or it was taken back. Stop its work; it runs elsewhere.`,
      data,
    )
    this.jobId = data?.jobId
    this.fence = data?.fence
  }
}

export class ClosedError extends SluiceError {
  readonly code = 'SLUICE_CLOSED'

  /**
   * @param what - What was closed: `The queue "promotions"`.
   * @param meaning - What comes of it.
   */
  constructor(what: string, meaning = 'Make a new one, or close it after its last use.') {
    super(`${what} is closed. ${meaning}`)
  }
}

export class ActionClosedError extends SluiceError {
  readonly code = 'SLUICE_ACTION_CLOSED'
  /** Its full id. */
  readonly action: string

  constructor(data: { action: string }) {
    super(
      `Action ${JSON.stringify(data.action)} is sealed or has ended: nothing more can be added. Submit under another name.`,
    )
    this.action = data.action
  }
}

export class ActionTakenError extends SluiceError {
  readonly code = 'SLUICE_ACTION_TAKEN'
  /** Its full id. */
  readonly action: string

  constructor(data: { action: string }) {
    super(
      `Action ${JSON.stringify(data.action)} was begun by somebody else: going on after what it has received would leave out jobs. Submit under another name, or add to it.`,
    )
    this.action = data.action
  }
}

export class UnknownActionError extends SluiceError {
  readonly code = 'SLUICE_UNKNOWN_ACTION'
  readonly id: string

  constructor(data: { id: string }) {
    super(`There is no action ${JSON.stringify(data.id)}, or its record has expired (keepActionsMs after its end).`)
    this.id = data.id
  }
}

export class UnknownQueueError extends SluiceError {
  readonly code = 'SLUICE_UNKNOWN_QUEUE'
  readonly queue: string

  constructor(data: { queue: string }) {
    super(
      `The store has no queue ${JSON.stringify(data.queue)} under this prefix. If it shares limits, it is found by the config file that says which.`,
    )
    this.queue = data.queue
  }
}

export class UnknownScheduleError extends SluiceError {
  readonly code = 'SLUICE_UNKNOWN_SCHEDULE'
  readonly schedule: string

  constructor(data: { schedule: string }) {
    super(`There is no schedule ${JSON.stringify(data.schedule)}. Names are as they were given to schedules.set.`)
    this.schedule = data.schedule
  }
}

export class WaitedTooLongError extends SluiceError {
  readonly code = 'SLUICE_WAITED_TOO_LONG'
  readonly timeoutMs: number

  /** @param data - `what`: what was waited for, `action "a:b:c"`. */
  constructor(data: { what: string; timeoutMs: number }) {
    super(`The ${data.what} did not end within ${data.timeoutMs} ms. It goes on; wait again, or cancel it.`)
    this.timeoutMs = data.timeoutMs
  }
}

export class JobTimeoutError extends SluiceError {
  readonly code = 'SLUICE_JOB_TIMEOUT'
  readonly jobId: string
  readonly jobTimeoutMs: number

  /** @param data - `option`: which one gave the time. */
  constructor(data: { jobId: string; jobTimeoutMs: number; option?: string }) {
    super(
      `Job ${JSON.stringify(data.jobId)} ran longer than ${data.jobTimeoutMs} ms (${data.option ?? 'jobTimeoutMs of its queue'}); its signal was aborted.`,
    )
    this.jobId = data.jobId
    this.jobTimeoutMs = data.jobTimeoutMs
  }
}

export class AggregateTimeoutError extends SluiceError {
  readonly code = 'SLUICE_AGGREGATE_TIMEOUT'
  readonly type: string
  readonly timeoutMs: number

  constructor(data: { type: string; timeoutMs: number }) {
    super(
      `The aggregate of type ${JSON.stringify(data.type)} took longer than ${data.timeoutMs} ms (timeoutMs); its signal was aborted.`,
    )
    this.type = data.type
    this.timeoutMs = data.timeoutMs
  }
}

/** Throw it in a handler to send the job to the dead letters now, without another try. */
export class PermanentError extends SluiceError {
  readonly code = 'SLUICE_PERMANENT'
}

/** Throw it in a handler when the upstream pushes back: the job comes back without costing a retry. */
export class ThrottledError extends SluiceError {
  readonly code = 'SLUICE_THROTTLED'
  /** For how long the upstream wants no calls, when it said so. */
  readonly retryAfterMs: number | undefined

  constructor(data?: { retryAfterMs?: number | undefined; message?: string; cause?: unknown }) {
    super(data?.message ?? 'The upstream pushed back.', data)
    this.retryAfterMs = data?.retryAfterMs
  }
}

/** Thrown by the built-in processor `http.request`: the job is tried again. */
export class UpstreamError extends SluiceError {
  readonly code = 'SLUICE_UPSTREAM'
  readonly host: string
  /** What it answered; undefined when it did not. */
  readonly status: number | undefined

  constructor(data: { host: string; status?: number | undefined; message: string; cause?: unknown }) {
    super(data.message, data)
    this.host = data.host
    this.status = data.status
  }
}

export class ScriptError extends SluiceError {
  readonly code = 'SLUICE_SCRIPT'
  readonly script: string

  constructor(data: { script: string; detail: string; cause?: unknown }) {
    const isForbidden = data.detail.startsWith('NOPERM')
    const advice = isForbidden
      ? 'Give the user of this connection that permission; docs/guides/redis.md says which Sluice needs.'
      : 'This is a bug in Sluice or damaged data; please report it.'
    super(`Script ${data.script} failed: ${data.detail}. ${advice}`, data)
    this.script = data.script
  }
}
