import type { ActionRules, ActionState } from '../../../src/store/scripts/open-action.ts'
import type { ActionCounts, FoundAction } from '../../../src/store/scripts/read-actions.ts'
import { tenantPace } from './congestion.ts'
import type { QueueState } from './queue-state.ts'
import type { Job } from './tenant.ts'

/** A moment at which so many jobs of an action had ended. */
interface Progress {
  readonly at: number
  readonly done: number
}

/** A bulk action. Where its jobs are is not written down here: they are asked. */
export interface Action {
  readonly tenant: string
  readonly name: string
  readonly rules: ActionRules
  readonly webhook: string
  readonly begunBy: string
  /** Its type has an aggregate of its own. */
  readonly aggregates: boolean
  state: ActionState
  isForgotten: boolean
  isSealed: boolean
  received: number
  /** By the queue's clock: its jobs have later numbers. */
  readonly createdAt: number
  startedAt: number
  endedAt: number
  lastEndAt: number
  attempts: number
  throttles: number
  notifiedAt: number
  seen: Progress
  before: Progress
  /** Jobs that had ended when it last changed. */
  doneBefore: number
  /** The first number of the list that went with its end; 0: none. */
  droppedFrom: number
  aggregate: string | undefined
  error: string | undefined
  readonly watchers: Map<string, number>
  readonly durations: Map<number, number>
  readonly errors: Map<string, { count: number; readonly example: string }>
  readonly letters: string[]
  /** Numbers of jobs that were cancelled while they waited. */
  readonly marked: string[]
  readonly results: Map<string, string>
  /** Numbers of jobs with results, as they ended first. */
  readonly finished: string[]
}

export function newAction(
  opened: Pick<Action, 'tenant' | 'name' | 'rules' | 'webhook' | 'begunBy' | 'aggregates'>,
  createdAt: number,
): Action {
  return {
    ...opened,
    rules: { ...opened.rules, keepResults: opened.rules.keepResults || opened.aggregates },
    state: 'CREATED',
    isForgotten: false,
    isSealed: false,
    received: 0,
    createdAt,
    startedAt: 0,
    endedAt: 0,
    lastEndAt: 0,
    attempts: 0,
    throttles: 0,
    notifiedAt: 0,
    seen: { at: 0, done: 0 },
    before: { at: 0, done: 0 },
    doneBefore: 0,
    droppedFrom: 0,
    aggregate: undefined,
    error: undefined,
    watchers: new Map(),
    durations: new Map(),
    errors: new Map(),
    letters: [],
    marked: [],
    results: new Map(),
    finished: [],
  }
}

export function isOver({ state }: Action): boolean {
  return state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED'
}

export function isClosed(action: Action): boolean {
  return action.isSealed || isOver(action)
}

function jobsIn(queue: QueueState, action: Action): Job[] {
  return queue.jobs.filter((job) => job.action === action)
}

export function countsIn(queue: QueueState, action: Action): ActionCounts {
  const jobs = jobsIn(queue, action)
  const at = (state: Job['state']): number => jobs.filter((job) => job.state === state).length
  const as = (end: Job['ended']): number => jobs.filter(({ ended }) => ended === end).length
  return {
    total: jobs.length,
    waiting: at('waiting'),
    running: at('running'),
    delayed: at('delayed'),
    succeeded: as('succeeded'),
    failed: as('failed'),
    canceled: as('canceled'),
  }
}

export function doneIn(queue: QueueState, action: Action): number {
  const { succeeded, failed, canceled } = countsIn(queue, action)
  return succeeded + failed + canceled
}

/** The numbers of its lane: the first that was given, and the next. */
export function numbersOf(queue: QueueState, action: Action): { first: number; next: number } {
  const fresh = jobsIn(queue, action).find(({ sequence }) => !sequence.startsWith('0'))
  const lane = queue.tenants
    .find(({ name }) => name === action.tenant)
    ?.lanes.find(({ token }) => token === action.rules.lane)
  return { first: Number(fresh?.sequence ?? 0), next: lane?.next ?? 0 }
}

/** Cancelled jobs that still stand in its lane. */
export function marksIn(queue: QueueState, action: Action): number {
  const lane = queue.tenants
    .find(({ name }) => name === action.tenant)
    ?.lanes.find(({ token }) => token === action.rules.lane)
  return [...(lane?.front ?? []), ...(lane?.list ?? [])].filter(({ state }) => state === 'canceled').length
}

/** By field, as it is stored: durations, errors. */
export function statisticsOf({ durations, errors }: Action): [string, string][] {
  return [
    ...[...durations].map(([bucket, count]): [string, string] => [`d${bucket}`, String(count)]),
    ...[...errors].map(([message, { count, example }]): [string, string] => [`e${message}`, `${count}\n${example}`]),
  ]
}

export function viewOf(queue: QueueState, action: Action, now: number, withStatistics: boolean): FoundAction {
  const { tenant, name, state, isSealed, received, rules, attempts, throttles, before } = action
  const { type, level, lane, keepResults, failFast, maxFailureRatio } = rules
  const seconds = (now - before.at) / 1e6
  const ms = (us: number): number => Math.round(us / 1000)
  return {
    ...{ tenant, name, state, isSealed, received, type, level, lane, keepResults, failFast, maxFailureRatio },
    counts: countsIn(queue, action),
    createdAt: ms(action.createdAt),
    startedAt: ms(action.startedAt),
    endedAt: ms(action.endedAt),
    lastEndAt: ms(action.lastEndAt),
    ...numbersOf(queue, action),
    attempts,
    throttles,
    perSecond: before.at === 0 || seconds <= 0 ? 0 : (doneIn(queue, action) - before.done) / seconds,
    pace: isOver(action) ? undefined : tenantPace(queue, tenant),
    aggregate: withStatistics ? (action.aggregate ?? '') : '',
    error: withStatistics ? (action.error ?? '') : '',
    statistics: new Map(withStatistics ? statisticsOf(action) : []),
  }
}
