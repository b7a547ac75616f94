import type { BucketRule, LimitRule } from '../store/settings.ts'
import { isTimeZone, zoneOffsets } from './zone-offsets.ts'

/**
 * At most `limit` calls arrive at the upstream in any sliding `windowMs`. Grants are spread evenly, `burst` of them at
 * once at the most.
 */
export interface BucketDefinition {
  readonly kind: 'bucket'
  readonly limit: number
  readonly windowMs: number
  /**
   * Calls that may go out together after a pause. A larger burst lowers the average rate; more than half the limit is
   * refused.
   * @default max(1, ⌈limit / 100⌉)
   */
  readonly burst?: number
  /**
   * By how much the way from grant to upstream may vary without breaking the promise. It is paid for in rate: 50 ms cost
   * 5 % at one second, 0.1 % at a minute.
   * @default 50
   */
  readonly jitterMs?: number
}

/**
 * At most `limit` grants in each window of the calendar: windows are fixed and lie end to end, so they suit long ones (a
 * day's budget, a partner's calendar hour). All of it may be granted at once when a window begins.
 */
export interface WindowDefinition {
  readonly kind: 'window'
  readonly limit: number
  /** From 100. */
  readonly windowMs: number
  /**
   * By how much later than a multiple of `windowMs` since 1970 the windows begin: with a `timeZone`, of its clock on the
   * wall. A week begins on Thursday, as 1970 did: 345,600,000 moves it to Monday.
   * @default 0
   */
  readonly offsetMs?: number
  /** Whose days they are, summer time included: 'Europe/Berlin'. @default 'UTC' */
  readonly timeZone?: string
  /**
   * No grant is made in the last so many milliseconds of a window: its call could arrive in the next.
   * @default 50, at most half the window
   */
  readonly jitterMs?: number
}

/**
 * What the upstream says is left of a budget that it counts itself. It is read from the headers of answers (`http.request`
 * does it, `ctx.learn` otherwise); while nothing is known, one call at a time goes out to ask.
 */
export interface QuotaDefinition {
  readonly kind: 'quota'
  /**
   * What must stay over: nothing is granted that would leave less. At most a tenth of the upstream's limit, where it
   * tells that.
   * @default 100
   */
  readonly threshold?: number
  /** Names of several budgets (a user's three tokens). Each call is granted by the one with most left: see `ctx.grant`. */
  readonly pool?: readonly string[]
}

/** At most `max` jobs in flight at once. Slots are the leases themselves, so a crash cannot leak one. */
export interface ConcurrencyDefinition {
  readonly kind: 'concurrency'
  readonly max: number
}

/** `'500/s'` is short for a bucket of 500 a second; also `'30/min'`, `'5000/h'`, `'1000/10s'`. */
export type LimitDefinition = string | BucketDefinition | WindowDefinition | QuotaDefinition | ConcurrencyDefinition

const DEFAULT_JITTER_MS = 50
const LARGEST_JITTER_MS = 1_000
const LARGEST_COUNT = 1_000_000_000
const LONGEST_WINDOW_MS = 366 * 86_400_000
const SHORTEST_ALIGNED_MS = 100
const DEFAULT_THRESHOLD = 100
const LARGEST_POOL = 100
const memberPattern = /^[A-Za-z0-9._-]{1,64}$/

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
}

/** Throws an Error whose message continues the sentence "<the limit> …". */
export function parseLimit(name: string, definition: unknown): LimitRule {
  if (typeof definition === 'string') return bucketRule(name, parseRate(definition))
  if (typeof definition !== 'object' || definition === null) {
    throw new Error(`must be a rate such as '500/s' or an object with a kind, not ${String(definition)}`)
  }
  const { kind } = definition as { kind?: unknown }
  if (kind === 'bucket') {
    refuseUnknown(definition, ['kind', 'limit', 'windowMs', 'burst', 'jitterMs'])
    return bucketRule(name, definition as BucketDefinition)
  }
  if (kind === 'window') {
    refuseUnknown(definition, ['kind', 'limit', 'windowMs', 'offsetMs', 'timeZone', 'jitterMs'])
    return windowRule(name, definition as WindowDefinition)
  }
  if (kind === 'quota') {
    refuseUnknown(definition, ['kind', 'threshold', 'pool'])
    return quotaRule(name, definition as QuotaDefinition)
  }
  if (kind === 'concurrency') {
    refuseUnknown(definition, ['kind', 'max'])
    return { name, kind, max: wholeNumber('max', (definition as ConcurrencyDefinition).max, 1, LARGEST_COUNT) }
  }
  throw new Error(`must have kind 'bucket', 'window', 'quota' or 'concurrency', not ${JSON.stringify(kind)}`)
}

export function isDefinition(value: unknown): value is LimitDefinition {
  return typeof value === 'string' || (typeof value === 'object' && value !== null && 'kind' in value)
}

function parseRate(text: string): BucketDefinition {
  const match = /^(\d+)\s*\/\s*(\d*)\s*([a-z]+)$/.exec(text.trim())
  const ms = match && unitMs[match[3] ?? '']
  if (!match || !ms) throw new Error(`must be a rate such as '500/s', '30/min' or '1000/10s', not '${text}'`)
  return { kind: 'bucket', limit: Number(match[1]), windowMs: ms * (match[2] === '' ? 1 : Number(match[2])) }
}

function bucketRule(name: string, definition: BucketDefinition): BucketRule {
  const limit = wholeNumber('limit', definition.limit, 1, LARGEST_COUNT)
  const windowMs = wholeNumber('windowMs', definition.windowMs, 1, LONGEST_WINDOW_MS)
  const burst = wholeNumber('burst', definition.burst ?? Math.ceil(limit / 100), 1, LARGEST_COUNT)
  const jitterMs = wholeNumber('jitterMs', definition.jitterMs ?? DEFAULT_JITTER_MS, 0, LARGEST_JITTER_MS)
  if (burst > 1 && burst > limit / 2) {
    throw new Error(`has a burst of ${burst}, more than half its limit of ${limit}: calls would come in lumps`)
  }
  return { name, kind: 'bucket', count: limit, window: windowMs * 1000, burst, jitter: jitterMs * 1000 }
}

function windowRule(name: string, definition: WindowDefinition): LimitRule {
  const limit = wholeNumber('limit', definition.limit, 1, LARGEST_COUNT)
  const windowMs = wholeNumber('windowMs', definition.windowMs, SHORTEST_ALIGNED_MS, LONGEST_WINDOW_MS)
  const offsetMs = wholeNumber('offsetMs', definition.offsetMs ?? 0, 0, windowMs - 1)
  const half = Math.floor(windowMs / 2)
  const most = Math.min(LARGEST_JITTER_MS, half)
  const jitterMs = wholeNumber('jitterMs', definition.jitterMs ?? Math.min(DEFAULT_JITTER_MS, half), 0, most)
  const { timeZone = 'UTC' } = definition
  if (!isTimeZone(timeZone)) {
    throw new Error(`needs a timeZone such as 'UTC' or 'Europe/Berlin', not ${JSON.stringify(timeZone)}`)
  }
  const zones = zoneOffsets(timeZone)
  return {
    name,
    kind: 'window',
    count: limit,
    window: windowMs * 1000,
    offset: offsetMs * 1000,
    jitter: jitterMs * 1000,
    ...(zones.length > 2 || zones[1] !== 0 ? { zones } : {}),
  }
}

function quotaRule(name: string, definition: QuotaDefinition): LimitRule {
  const threshold = wholeNumber('threshold', definition.threshold ?? DEFAULT_THRESHOLD, 0, LARGEST_COUNT)
  const { pool } = definition
  if (pool === undefined) return { name, kind: 'quota', threshold }
  if (!Array.isArray(pool) || pool.length === 0 || pool.length > LARGEST_POOL) {
    throw new Error(`needs a pool of 1 to ${LARGEST_POOL} names, not ${JSON.stringify(pool)}`)
  }
  const wrong = pool.find((member) => typeof member !== 'string' || !memberPattern.test(member))
  if (wrong !== undefined) {
    throw new Error(`has a pool with ${JSON.stringify(wrong)}: letters, digits, . _ and - only, at most 64`)
  }
  if (new Set(pool).size < pool.length) throw new Error('has a pool in which a name is given twice')
  return { name, kind: 'quota', threshold, members: [...pool] }
}

/** What the rule grants on average when it is always asked. */
export function effectivePerSecond(rule: BucketRule, jitterUs: number): number {
  return (1_000_000 * (rule.count - rule.burst + 1)) / (rule.window + jitterUs)
}

function wholeNumber(field: string, value: unknown, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw new Error(`needs a ${field} that is a whole number from ${min} to ${max}, not ${String(value)}`)
  }
  return value
}

function refuseUnknown(definition: object, known: readonly string[]): void {
  const unknown = Object.keys(definition).find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw new Error(`has an unknown field ${JSON.stringify(unknown)}; known are ${known.join(', ')}`)
}
