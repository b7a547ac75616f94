import {
  checkOptions,
  didYouMean,
  group,
  integer,
  number,
  oneOf,
  optional,
  type Report,
  type Rule,
  type Settings,
  text,
} from '../assert.ts'
import { attachLimits, type LimitsOption } from '../limits/attachment.ts'
import { problemOfGroups, type Shared, sharedAmong } from '../limits/shared.ts'
import { type Level, levels } from '../store/names.ts'
import type { Declaration, DeclaredSettings, LimitRules, SettingValues } from '../store/settings.ts'
import { repeatingAuditRules } from './audit/audit-options.ts'
import { backoffRules, checkBackoffs, congestionValues } from './congestion-options.ts'
import { jobBounds } from './job-bounds.ts'

/**
 * Options of a queue. What is marked *shared* is stored with the queue and holds for every process that uses it; what a process
 * does not give stays as others have declared it, and is the default where nobody has.
 */
export interface QueueOptions {
  /**
   * Budgets that a job must be granted before it runs. Given, they replace the whole set; `{}` says that there are none. Shared.
   */
  limits?: LimitsOption
  /**
   * How tenants share the limits of the queue. `'fair'`: equal by weight among all that can use it, and what one leaves
   * another takes. `'strict'`: nobody gets more than an equal part, whether the others use theirs or not. A
   * tenant with jobs waiting on several levels counts on each of them, which makes the parts smaller. Shared.
   * @default 'fair'
   */
  share?: 'fair' | 'strict'
  /**
   * For how long an upstream that pushes back can close a limit, whatever it says. Shared.
   * @default 3_600_000
   */
  maxCloseMs?: number
  /**
   * How much a tenant of weight 1 takes in one turn. Larger means fewer, larger batches and a coarser mix. Shared.
   * @default 4
   */
  quantum?: number
  /**
   * Above 0, tenants that have had much of their work done stand further back; below 0, nearly done tenants are
   * finished first. 1,000–10,000 is weak, 100,000–1,000,000 strong. Shared.
   * @default 0
   */
  alpha?: number
  /**
   * The most that `alpha` can hold a tenant back or bring it forward. Shared.
   * @default 60_000
   */
  maxProgressMs?: number
  /**
   * A tenant that could have run for this long is overdue: at most every tenth turn goes to the longest overdue one,
   * whatever its level and base priority. 0 switches this off. Shared.
   * @default 60_000
   */
  maxWaitMs?: number
  /**
   * How long a job stays this worker's without a heartbeat. A crashed worker's jobs wait this long before another takes
   * them: shorter recovers faster and renews more often.
   * @default 15_000
   */
  leaseMs?: number
  /**
   * Leases that may run out under one job before it is a dead letter: it may be what kills its workers. Shared.
   * @default 5
   */
  maxStalls?: number
  /**
   * Retries of a job that fails: 3 makes four runs.
   * @default 3
   */
  maxRetries?: number
  /**
   * How often the upstream may push one job back before it is a dead letter.
   * @default 100
   */
  maxThrottles?: number
  /**
   * How long a job may run. After that its signal is aborted and the run counts as failed.
   * @default 30_000
   */
  jobTimeoutMs?: number
  /**
   * How long a job may come round without any worker knowing its type before it is a dead letter.
   * @default 3_600_000
   */
  unknownTypeMs?: number
  /**
   * How long running jobs may go on after `close`; what is left then goes back at once.
   * @default 30_000
   */
  shutdownGraceMs?: number
  /**
   * The largest payload, as JSON in bytes.
   * @default 262_144
   */
  maxPayloadBytes?: number
  /**
   * Jobs, waiting or delayed, that the queue takes; 0 for no bound. Shared.
   * @default 0
   */
  maxPending?: number
  /**
   * Jobs, waiting or delayed, that the queue takes from one tenant; 0 for no bound. Shared.
   * @default 0
   */
  maxPendingPerTenant?: number
  /**
   * What a producer does when the queue is full: wait for room, or get a QueueFullError.
   * @default 'wait'
   */
  whenFull?: 'wait' | 'error'
  /**
   * For how long an id given by a caller is known: at least half of this, at most all of it. Shared.
   * @default 172_800_000
   */
  keepIdsMs?: number
  /**
   * For how long dead letters are kept. Shared.
   * @default 604_800_000
   */
  keepDeadLettersMs?: number
  /**
   * For how long an action is known after its end, its statistics and the ids of its jobs included. Shared.
   * @default 604_800_000
   */
  keepActionsMs?: number
  /**
   * For how long the results of an action's jobs are kept after its end. Shared.
   * @default 86_400_000
   */
  keepResultsMs?: number
  /**
   * The largest result of a job that an action keeps, as JSON in bytes; of a larger one only its size is kept.
   * @default 65_536
   */
  maxResultBytes?: number
  /**
   * How far back `events` can go. Shared.
   * @default 86_400_000
   */
  keepEventsMs?: number
  /**
   * How many events are kept at most, about. Shared.
   * @default 10_000
   */
  maxEvents?: number
  /** What a tenant's backlog means in time, and how long a job waits that an upstream pushed back. Shared. */
  congestion?: {
    /**
     * A job that was pushed back without a word of when to come again waits by its tenant's backlog; otherwise for
     * `baseBackoffMs`.
     * @default true
     */
    enabled?: boolean
    /**
     * How long such a job waits at least, and what congestion levels are measured against.
     * @default 1_000
     */
    baseBackoffMs?: number
    /**
     * How long it waits at most.
     * @default 120_000
     */
    maxBackoffMs?: number
    /**
     * How often congestion is recorded while jobs wait.
     * @default 10_000
     */
    snapshotMs?: number
    /**
     * For how long what was recorded is kept.
     * @default 3_600_000
     */
    retentionMs?: number
  }
  /**
   * A slow audit looks again and again whether every job is in exactly one place and every count is what it counts, and puts
   * right what differs. One process of all that work for the queue does it at a time.
   */
  audit?: {
    /**
     * Whether this process takes part.
     * @default true
     */
    enabled?: boolean
    /**
     * From the start of one round over the whole queue to that of the next, at least.
     * @default 600_000
     */
    everyMs?: number
    /**
     * Between two steps of a round while the queue works: each takes Redis a millisecond or less. Shorter finds sooner what
     * differs, and takes more of its time.
     * @default 500
     */
    stepMs?: number
    /**
     * The same while nothing is claimed: an idle process sends next to nothing. Longer in a process with many queues.
     * @default 60_000
     */
    idleStepMs?: number
  }
}

interface QueueLimits {
  readonly rules: LimitRules
  readonly shared: readonly Shared[]
}

const limitsRule: Rule<QueueLimits> = (value, path, report) => {
  const shared = sharedAmong(value)
  const problem = problemOfGroups(shared)
  if (problem) report(path, problem)
  return { rules: attachLimits(value, path, report), shared }
}

const day = 86_400_000

export const queueRules = {
  limits: limitsRule,
  share: oneOf(['fair', 'strict'], { default: 'fair' }),
  maxCloseMs: integer({ min: 0, max: day, default: 3_600_000 }),
  quantum: integer({ min: 1, max: 10_000, default: 4 }),
  alpha: number({ min: -1e9, max: 1e9, default: 0 }),
  maxProgressMs: integer({ min: 0, max: day, default: 60_000 }),
  maxWaitMs: integer({ min: 0, max: day, default: 60_000 }),
  leaseMs: integer({ min: 100, max: day, default: 15_000 }),
  maxStalls: integer({ min: 0, max: 20, default: 5 }),
  maxRetries: integer({ min: 0, max: jobBounds.maxRetries, default: 3 }),
  maxThrottles: integer({ min: 0, max: 1_000_000, default: 100 }),
  jobTimeoutMs: integer({ min: 1, max: jobBounds.timeoutMs, default: 30_000 }),
  unknownTypeMs: integer({ min: 0, max: 30 * day, default: 3_600_000 }),
  shutdownGraceMs: integer({ min: 0, max: day, default: 30_000 }),
  maxPayloadBytes: integer({ min: 2, max: 64 * 1024 * 1024, default: 262_144 }),
  maxPending: integer({ min: 0, default: 0 }),
  maxPendingPerTenant: integer({ min: 0, default: 0 }),
  whenFull: oneOf(['wait', 'error'], { default: 'wait' }),
  keepIdsMs: integer({ min: 2_000, max: 60 * day, default: 2 * day }),
  keepDeadLettersMs: integer({ min: 1_000, max: 366 * day, default: 7 * day }),
  keepActionsMs: integer({ min: 1_000, max: 366 * day, default: 7 * day }),
  keepResultsMs: integer({ min: 1_000, max: 366 * day, default: day }),
  maxResultBytes: integer({ min: 0, max: 16 * 1024 * 1024, default: 65_536 }),
  keepEventsMs: integer({ min: 1_000, max: 366 * day, default: day }),
  maxEvents: integer({ min: 100, max: 1_000_000, default: 10_000 }),
  congestion: group(backoffRules),
  audit: group(repeatingAuditRules),
}

export type QueueSettings = Settings<typeof queueRules>

export function checkQueueOptions(name: string, options: QueueOptions | undefined): QueueSettings {
  return checkOptions(`queue "${name}"`, options, queueRules, checkBackoffs)
}

const sharedTimes = {
  maxCloseMs: 'max_close',
  maxProgressMs: 'max_progress',
  maxWaitMs: 'max_wait',
  keepIdsMs: 'keep_ids',
  keepDeadLettersMs: 'keep_dead',
  keepActionsMs: 'keep_actions',
  keepResultsMs: 'keep_results',
  keepEventsMs: 'keep_events',
} as const

const sharedNumbers = {
  quantum: 'quantum',
  alpha: 'alpha',
  maxStalls: 'max_stalls',
  maxPending: 'max_pending',
  maxPendingPerTenant: 'max_pending_tenant',
  maxEvents: 'max_events',
} as const

/** Those options that all processes share, as the scripts read them; what is not given is left out. */
function sharedValues(options: QueueOptions | QueueSettings): Partial<SettingValues> {
  const values: { -readonly [Name in keyof SettingValues]?: SettingValues[Name] } = {}
  if (options.share !== undefined) values.strict = options.share === 'strict' ? 1 : 0
  for (const [option, name] of entriesOf(sharedTimes)) {
    const given = options[option]
    if (given !== undefined) values[name] = given * 1000
  }
  for (const [option, name] of entriesOf(sharedNumbers)) {
    const given = options[option]
    if (given !== undefined) values[name] = given
  }
  return { ...values, ...congestionValues(options.congestion ?? {}) }
}

function entriesOf<Table extends object>(table: Table): [keyof Table, Table[keyof Table]][] {
  return Object.entries(table) as [keyof Table, Table[keyof Table]][]
}

/** What a process with these options declares: of what all processes share, only what is given. */
export function declarationOf(options: QueueOptions | undefined, settings: QueueSettings): Declaration {
  const { values, limits, ...rest } = declaredSettings(settings)
  const given = Object.fromEntries(Object.keys(sharedValues(options ?? {})).map((name) => [name, true]))
  // `{}` says that there are none; whoever does not speak of them leaves them as they are.
  return { values, given, ...(options?.limits !== undefined && { limits }), ...rest }
}

/** The part that all processes share, as these settings have it. */
export function declaredSettings(settings: QueueSettings): DeclaredSettings {
  const { rules, shared } = settings.limits
  return {
    values: sharedValues(settings) as SettingValues,
    limits: rules,
    ...(shared.length > 0 && { shared: Object.fromEntries(shared.map(({ name, rule }) => [name, rule])) }),
  }
}

/** Options of one processor. */
export interface ProcessOptions {
  /**
   * Jobs that this process runs at once. The queue has one pool per process: where several processors give a number, the
   * largest counts.
   * @default 10
   */
  concurrency?: number
  /** Instead of the queue's `jobTimeoutMs`, for this type. */
  timeoutMs?: number
  /** Instead of the queue's `maxRetries`, for this type. */
  maxRetries?: number
  /**
   * The name of the limit that stands for the upstream: it learns when that pushes back, or says what is left. It may be one
   * that some tenants have, or that is added while running: nothing learns from the jobs of others, or until then. A name that
   * none of the limits given to the queue has is said in the log; one that is nearly theirs is refused.
   * @default the narrowest: of the tenant's, else of its level's, else of the queue's that with the shortest window
   */
  upstream?: string
  /**
   * Serve only these levels, in the queue's order. The queue has one pool per process: all its processors give the same.
   * @default all three
   */
  levels?: readonly Level[]
}

export const servedLevels = optional((value: unknown, path: string, report: Report) => {
  const isList = Array.isArray(value) && value.length > 0 && value.every((each) => levels.includes(each as Level))
  if (!isList) report(path, 'must be a list of high, normal and low')
  return isList ? levels.filter((level) => value.includes(level)) : levels
})

export const processRules = {
  concurrency: integer({ min: 1, max: 100_000, default: 10 }),
  timeoutMs: optional(integer({ min: 1, max: jobBounds.timeoutMs })),
  maxRetries: optional(integer({ min: 0, max: jobBounds.maxRetries })),
  upstream: optional(text({ maxLength: 64 })),
  levels: servedLevels,
}

/** What the limits that this process gives the queue are called. One tenant's own, and those added while running, are others. */
export function givenLimitNames({ rules }: QueueLimits): readonly string[] {
  return [...new Set(Object.values(rules).flatMap((each) => each.map(({ name }) => name)))]
}

/** A name that is nearly a given limit's is a mistake. Any other may be that of a limit which others attach. */
export function checkUpstream(limits: QueueLimits) {
  const known = givenLimitNames(limits)
  return ({ upstream }: { upstream: string | undefined }, report: Report): void => {
    if (upstream === undefined || known.includes(upstream)) return
    const hint = didYouMean(upstream, known)
    if (hint) report('upstream', `must be one of the queue's limits (${known.join(', ')}), not "${upstream}"${hint}`)
  }
}

export const queueNameRule = text({
  maxLength: 64,
  pattern: {
    test: /^[A-Za-z0-9][A-Za-z0-9._-]*$/,
    words: 'letters, digits, ".", "_" and "-", starting with a letter or digit',
  },
})
