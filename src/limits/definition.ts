import type { LimitRule } from '../store/settings.ts'

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

/** At most `max` jobs in flight at once. Slots are the leases themselves, so a crash cannot leak one. */
export interface ConcurrencyDefinition {
  readonly kind: 'concurrency'
  readonly max: number
}

/** `'500/s'` is short for a bucket of 500 a second; also `'30/min'`, `'5000/h'`, `'1000/10s'`. */
export type LimitDefinition = string | BucketDefinition | ConcurrencyDefinition

const DEFAULT_JITTER_MS = 50
const LARGEST_JITTER_MS = 1_000
const LARGEST_COUNT = 1_000_000_000
const LONGEST_WINDOW_MS = 366 * 86_400_000

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
  if (kind === 'concurrency') {
    refuseUnknown(definition, ['kind', 'max'])
    return { name, kind, max: wholeNumber('max', (definition as ConcurrencyDefinition).max, 1, LARGEST_COUNT) }
  }
  throw new Error(`must have kind 'bucket' or 'concurrency', not ${JSON.stringify(kind)}`)
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

function bucketRule(name: string, definition: BucketDefinition): LimitRule {
  const limit = wholeNumber('limit', definition.limit, 1, LARGEST_COUNT)
  const windowMs = wholeNumber('windowMs', definition.windowMs, 1, LONGEST_WINDOW_MS)
  const burst = wholeNumber('burst', definition.burst ?? Math.ceil(limit / 100), 1, LARGEST_COUNT)
  const jitterMs = wholeNumber('jitterMs', definition.jitterMs ?? DEFAULT_JITTER_MS, 0, LARGEST_JITTER_MS)
  if (burst > 1 && burst > limit / 2) {
    throw new Error(`has a burst of ${burst}, more than half its limit of ${limit}: calls would come in lumps`)
  }
  return { name, kind: 'bucket', count: limit, window: windowMs * 1000, burst, jitter: jitterMs * 1000 }
}

/** What the rule grants on average when it is always asked. */
export function effectivePerSecond(rule: LimitRule & { kind: 'bucket' }, jitterUs: number): number {
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
