import { percentiles } from '../../store/durations.ts'
import { fromToken, type Level } from '../../store/names.ts'
import type { JobErrorRecord } from '../../store/record.ts'
import type { ActionState } from '../../store/scripts/open-action.ts'
import type { ActionCounts, FoundAction } from '../../store/scripts/read-actions.ts'
import { type CongestionLevel, levelOfBackoff } from '../congestion.ts'

/** An action as it stands. Times in ms since 1970, by the clock of Redis. */
export interface ActionView {
  /** Names its place: `<queue>:<tenant>:<name>`. */
  readonly id: string
  readonly queue: string
  readonly tenant: string
  readonly name: string
  /** Of its jobs, where they do not say otherwise. */
  readonly type: string | undefined
  readonly level: Level
  readonly state: ActionState
  /** Nothing more is added: it ends when its last job has ended. */
  readonly isSealed: boolean
  /** Jobs that producers have sent so far, known ids included. */
  readonly received: number
  readonly counts: ActionCounts
  readonly keepResults: boolean
  readonly failFast: boolean
  readonly maxFailureRatio: number | undefined
  readonly createdAt: number
  /** When its first job was claimed. */
  readonly startedAt: number | undefined
  readonly endedAt: number | undefined
  /** Jobs that ended per second, over the last five to ten seconds. */
  readonly perSecond: number
  /**
   * Until its last job has ended, at the speed of its tenant, whose other actions take turns with it; undefined while it is
   * open, before its first job has started, and when nothing starts.
   */
  readonly etaMs: number | undefined
}

/** How far an action is. */
export interface ActionProgress extends ActionCounts {
  readonly state: ActionState
  readonly isSealed: boolean
  /** Jobs that have ended, one way or another. */
  readonly done: number
  readonly perSecond: number
  readonly etaMs: number | undefined
  /** What its tenant's backlog means in time. */
  readonly congestion: CongestionLevel
}

/** What became of an action. */
export interface ActionSummary {
  readonly id: string
  readonly state: ActionState
  readonly counts: ActionCounts
  /** How long the jobs ran that ended; undefined when none did. Right within five per cent. */
  readonly durationMs: { readonly p50: number; readonly p95: number; readonly p99: number } | undefined
  /** Runs of the jobs that ended. */
  readonly attempts: number
  /** Times the upstream pushed them back. */
  readonly throttles: number
  /** Why jobs failed for good: the ten most frequent reasons, each with one job that it happened to. */
  readonly errors: readonly ActionError[]
  readonly firstStartAt: number | undefined
  readonly lastEndAt: number | undefined
  /** What the custom aggregate of its type returned. */
  readonly aggregate: unknown
  /** Why there is no custom aggregate although there should be. */
  readonly aggregateError: string | undefined
}

export interface ActionError {
  readonly message: string
  readonly count: number
  readonly exampleId: string
}

const ends: readonly ActionState[] = ['COMPLETED', 'FAILED', 'CANCELED']
const ERRORS_SHOWN = 10

export function hasEnded(state: ActionState): boolean {
  return ends.includes(state)
}

export function idOf(queue: string, action: Pick<FoundAction, 'tenant' | 'name'>): string {
  return `${queue}:${action.tenant}:${action.name}`
}

export function toView(queue: string, found: FoundAction): ActionView {
  return {
    id: idOf(queue, found),
    queue,
    tenant: fromToken(found.tenant),
    name: fromToken(found.name),
    type: found.type === '' ? undefined : found.type,
    level: found.level,
    state: found.state,
    isSealed: found.isSealed,
    received: found.received,
    counts: found.counts,
    keepResults: found.keepResults,
    failFast: found.failFast,
    maxFailureRatio: found.maxFailureRatio,
    createdAt: found.createdAt,
    startedAt: momentOf(found.startedAt),
    endedAt: momentOf(found.endedAt),
    perSecond: speedOf(found),
    etaMs: etaOf(found),
  }
}

export function toProgress(found: FoundAction): ActionProgress {
  const { counts, state, isSealed } = found
  const perSecond = speedOf(found)
  return {
    ...counts,
    state,
    isSealed,
    done: counts.succeeded + counts.failed + counts.canceled,
    perSecond,
    etaMs: etaOf(found),
    congestion: found.pace ? levelOfBackoff(found.pace.backoffMs, found.pace.baseBackoffMs) : 'NONE',
  }
}

export function toSummary(queue: string, found: FoundAction): ActionSummary {
  const durations = new Map<number, number>()
  const errors: ActionError[] = []
  for (const [field, value] of found.statistics) {
    if (field.startsWith('d')) durations.set(Number(field.slice(1)), Number(value))
    else errors.push(toError(field, value))
  }
  errors.sort((a, b) => b.count - a.count || a.message.localeCompare(b.message))
  return {
    id: idOf(queue, found),
    state: found.state,
    counts: found.counts,
    durationMs: percentiles(durations),
    attempts: found.attempts,
    throttles: found.throttles,
    errors: errors.slice(0, ERRORS_SHOWN),
    firstStartAt: momentOf(found.startedAt),
    lastEndAt: momentOf(found.lastEndAt),
    aggregate: found.aggregate === '' ? undefined : JSON.parse(found.aggregate),
    aggregateError: found.error === '' ? undefined : (JSON.parse(found.error) as JobErrorRecord).message,
  }
}

/** `e<message>` → `<count>\n<job>`; `o` for all that came after the first fifty different ones. */
function toError(field: string, value: string): ActionError {
  const end = value.indexOf('\n')
  const message = field.startsWith('e') ? field.slice(1) : 'others'
  return { message, count: Number(value.slice(0, end)), exampleId: value.slice(end + 1) }
}

function momentOf(ms: number): number | undefined {
  return ms === 0 ? undefined : ms
}

/** An action that has ended has no speed any more. */
function speedOf({ state, perSecond }: FoundAction): number {
  return hasEnded(state) ? 0 : Math.round(perSecond * 100) / 100
}

function etaOf(found: FoundAction): number | undefined {
  const { state, isSealed, counts, startedAt, pace } = found
  const left = counts.waiting + counts.running + counts.delayed
  if (hasEnded(state) || left === 0) return 0
  if (!isSealed || startedAt === 0) return undefined
  const perSecond = pace?.speed ?? found.perSecond
  // Until its last waiting job has started, each other lane has had as many turns, or has run out.
  const others = pace ? Math.min(pace.waiting, counts.waiting * pace.lanes) - counts.waiting : 0
  return perSecond > 0 ? Math.round(((left + Math.max(0, others)) / perSecond) * 1_000) : undefined
}
