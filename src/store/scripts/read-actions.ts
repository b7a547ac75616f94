import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { readActions as script } from '../scripts.generated.ts'
import type { ActionState } from './open-action.ts'

/** An action as it is stored. Times in ms since 1970, 0 for never. */
export interface FoundAction {
  readonly tenant: string
  readonly name: string
  readonly state: ActionState
  readonly isSealed: boolean
  readonly received: number
  readonly counts: ActionCounts
  readonly type: string
  readonly level: Level
  readonly lane: string
  readonly keepResults: boolean
  readonly failFast: boolean
  readonly maxFailureRatio: number | undefined
  readonly createdAt: number
  readonly startedAt: number
  readonly endedAt: number
  readonly lastEndAt: number
  /** Jobs of its lane are numbered from here. */
  readonly first: number
  readonly next: number
  readonly attempts: number
  readonly throttles: number
  /** Jobs that ended per second, over the last five to ten seconds. */
  readonly perSecond: number
  /** How fast its tenant is; undefined when the action is over or nothing of the tenant waits. */
  readonly pace: TenantPace | undefined
  /** JSON of its custom aggregate; '' without one, or where statistics were not asked for. */
  readonly aggregate: string
  /** Why there is no aggregate; '' otherwise, or where statistics were not asked for. */
  readonly error: string
  readonly statistics: ReadonlyMap<string, string>
}

/** What the jobs of a tenant share. */
export interface TenantPace {
  readonly waiting: number
  /** Those that take turns: one for each of its actions with waiting jobs, and one for jobs without. */
  readonly lanes: number
  /** Starts a second. */
  readonly speed: number
  readonly backoffMs: number
  readonly baseBackoffMs: number
}

/** Its jobs, by where they are. */
export interface ActionCounts {
  readonly total: number
  readonly waiting: number
  readonly running: number
  readonly delayed: number
  readonly succeeded: number
  readonly failed: number
  readonly canceled: number
}

interface StoredRules {
  readonly type: string
  readonly level: Level
  readonly lane: string
  readonly keep_results?: boolean
  readonly fail_fast?: boolean
  readonly max_failure_ratio?: number
}

type Pace = [waiting: number, lanes: number, speed: string, backoff: string, base: string] | []

type Described = [string, ActionState, string[], string, string, string, string[], Pace]

/** @param names - `<tenant>:<name>`, tokens. Undefined in the place of each that is not known. */
export async function readActions(
  requests: Requests,
  names: readonly string[],
  options: { withStatistics?: boolean; nowUs?: string } = {},
): Promise<(FoundAction | undefined)[]> {
  const reply = await requests.run(script, () => ({
    nowGiven: options.nowUs ?? '',
    withStatistics: options.withStatistics ? 1 : 0,
    names,
  }))
  const [, now, ...described] = reply as ['actions', string, ...(Described | [])[]]
  return described.map((each) => (each.length === 0 ? undefined : decode(each, Number(now))))
}

function decode([id, state, flat, rulesJson, ...rest]: Described, nowUs: number): FoundAction {
  const [aggregate, error, statistics, pace] = rest
  const numbers = new Map<string, number>()
  for (let at = 0; at < flat.length; at += 2) numbers.set(flat[at] as string, Number(flat[at + 1]))
  const number = (name: string) => numbers.get(name) ?? 0
  const ms = (name: string) => Math.round(number(name) / 1000)
  const rules = JSON.parse(rulesJson) as StoredRules
  const [tenant = '', name = ''] = id.split(':')
  const counts: ActionCounts = {
    total: number('total'),
    waiting: number('waiting'),
    running: number('running'),
    delayed: number('delayed'),
    succeeded: number('succeeded'),
    failed: number('failed'),
    canceled: number('canceled'),
  }
  const done = counts.succeeded + counts.failed + counts.canceled
  const seconds = (nowUs - number('before_at')) / 1e6
  return {
    tenant,
    name,
    state,
    isSealed: number('sealed') === 1,
    received: number('received'),
    counts,
    type: rules.type,
    level: rules.level,
    lane: rules.lane,
    keepResults: rules.keep_results === true,
    failFast: rules.fail_fast === true,
    maxFailureRatio: rules.max_failure_ratio,
    createdAt: ms('created'),
    startedAt: ms('started'),
    endedAt: ms('ended'),
    lastEndAt: ms('last_end'),
    first: number('first'),
    next: number('next'),
    attempts: number('attempts'),
    throttles: number('throttles'),
    perSecond: number('before_at') === 0 || seconds <= 0 ? 0 : (done - number('before_done')) / seconds,
    pace: decodePace(pace),
    aggregate,
    error,
    statistics: pairs(statistics),
  }
}

function decodePace(pace: Pace): TenantPace | undefined {
  if (pace.length === 0) return undefined
  const [waiting, lanes, speed, backoff, base] = pace
  return {
    waiting,
    lanes,
    speed: Number(speed),
    backoffMs: Number(backoff) / 1000,
    baseBackoffMs: Number(base) / 1000,
  }
}

function pairs(flat: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at < flat.length; at += 2) found.set(flat[at] as string, flat[at + 1] as string)
  return found
}
