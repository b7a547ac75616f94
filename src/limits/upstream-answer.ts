/**
 * What an upstream's answer says about its limits. Pure: headers in, numbers out.
 *
 * Instants are measured against the answer's own `Date`, where it has one: the upstream's clock said both, so that a
 * clock of ours that is wrong does no harm.
 */
import { parseDictionary, parseList } from 'structured-headers'
import {
  type AnswerHeaders,
  attempt,
  dateOf,
  numberIn,
  parseHttpDate,
  resetSpanMs,
  valuesOf,
} from './answer-headers.ts'
import { quotaReadingOf } from './quota-reading.ts'

export interface UpstreamAnswer {
  readonly status: number
  readonly headers: AnswerHeaders
  /** The beginning of the body, as text: some upstreams say only there why they refuse. */
  readonly text: string
}

/** The upstream refused because it was asked too often, and wants no calls for `retryAfterMs` when it said so. */
export interface Pushback {
  readonly retryAfterMs: number | undefined
}

/** Who has just refused and says "at once" would refuse again: the shortest wait that is believed. */
const SHORTEST_WAIT_MS = 1_000

/** What GitHub asks for after a secondary limit that names no time. */
const SECONDARY_LIMIT_MS = 60_000

/**
 * Undefined when the answer is no pushback. 429 always is one; 403 when it gives a rate-limit reason, because it mostly
 * means "not allowed"; 503 when it says when to come back, because it mostly means "broken".
 */
export function pushbackOf(answer: UpstreamAnswer, nowMs: number = Date.now()): Pushback | undefined {
  const { status, headers } = answer
  const hasRetryAfter = headers['retry-after'] !== undefined
  if (status === 429 || (status === 503 && hasRetryAfter) || (status === 403 && hasRateLimitReason(answer, nowMs))) {
    return { retryAfterMs: believable(waitMs(answer, dateOf(headers) ?? nowMs)) }
  }
  return undefined
}

function hasRateLimitReason({ headers, text }: UpstreamAnswer, nowMs: number): boolean {
  return (
    headers['retry-after'] !== undefined ||
    remainingHeaders.some((name) => numberIn(headers, name) === 0) ||
    quotaReadingOf(headers, nowMs)?.remaining === 0 ||
    isSecondaryLimit(text) ||
    /\brate limit (has been )?exceeded\b/i.test(text) ||
    /"(user|concurrent)?RateLimitExceeded"|"(quota|dailyLimit)Exceeded"/i.test(text)
  )
}

/** Those that say that nothing is left also where nothing says until when. */
const remainingHeaders = ['x-ratelimit-remaining', 'ratelimit-remaining', 'x-rate-limit-remaining'] as const

function isSecondaryLimit(text: string): boolean {
  return /\bsecondary rate limit\b|\babuse detection mechanism\b/i.test(text)
}

/** The first of the headers that says something counts: the most exact one is asked first. */
function waitMs({ headers, text }: UpstreamAnswer, nowMs: number): number | undefined {
  return (
    retryAfterMs(headers, nowMs) ??
    rateLimitMs(headers) ??
    resetMs(headers, { reset: 'ratelimit-reset', remaining: 'ratelimit-remaining' }, nowMs) ??
    resetMs(headers, { reset: 'x-ratelimit-reset-after', remaining: 'x-ratelimit-remaining' }, nowMs) ??
    resetMs(headers, { reset: 'x-ratelimit-reset', remaining: 'x-ratelimit-remaining' }, nowMs) ??
    resetMs(headers, { reset: 'x-rate-limit-reset', remaining: 'x-rate-limit-remaining' }, nowMs) ??
    resetMs(headers, { reset: 'x-ratelimit-reset-requests', remaining: 'x-ratelimit-remaining-requests' }, nowMs) ??
    resetMs(headers, { reset: 'x-ratelimit-reset-tokens', remaining: 'x-ratelimit-remaining-tokens' }, nowMs) ??
    (isSecondaryLimit(text) ? SECONDARY_LIMIT_MS : undefined)
  )
}

/** `Retry-After: 120` or a date; of several, the longest. */
function retryAfterMs(headers: AnswerHeaders, nowMs: number): number | undefined {
  const waits = valuesOf(headers, 'retry-after').flatMap((value) => {
    if (/^\d+(\.\d+)?$/.test(value)) return [Number(value) * 1_000]
    const at = parseHttpDate(value)
    return at === undefined ? [] : [at - nowMs]
  })
  return longest(waits)
}

/** `RateLimit: "default";r=0;t=30`, or the older `limit=100, remaining=0, reset=30`. Only what is used up makes us wait. */
function rateLimitMs(headers: AnswerHeaders): number | undefined {
  const text = valuesOf(headers, 'ratelimit').join(', ')
  if (text === '') return undefined
  return /^\s*(limit|remaining|reset)\s*=/.test(text) ? rateLimitDictionaryMs(text) : rateLimitListMs(text)
}

function rateLimitListMs(text: string): number | undefined {
  const policies = attempt(() => parseList(text)) ?? []
  const waits = policies.flatMap(([, parameters]) => {
    const seconds = parameters.get('t')
    return typeof seconds === 'number' && !isLeft(parameters.get('r')) ? [seconds * 1_000] : []
  })
  return longest(waits)
}

function rateLimitDictionaryMs(text: string): number | undefined {
  const fields = attempt(() => parseDictionary(text))
  const seconds = fields?.get('reset')?.[0]
  return typeof seconds === 'number' && !isLeft(fields?.get('remaining')?.[0]) ? seconds * 1_000 : undefined
}

function isLeft(remaining: unknown): boolean {
  return typeof remaining === 'number' && remaining > 0
}

/** A reset without its remaining counts; one with something left belongs to a limit that is not what refused us. */
function resetMs(
  headers: AnswerHeaders,
  names: { reset: string; remaining: string },
  nowMs: number,
): number | undefined {
  const resetInMs = resetSpanMs(headers, names.reset, nowMs)
  return resetInMs === undefined || isLeft(numberIn(headers, names.remaining)) ? undefined : resetInMs
}

/** Longer waits are cut here, or a number of fifty digits would be none that scripts can read. */
const LONGEST_WAIT_MS = 366 * 86_400_000

/** Undefined stays undefined: the caller has its own way to wait when nothing was said. */
function believable(waitedMs: number | undefined): number | undefined {
  return waitedMs === undefined ? undefined : Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, Math.ceil(waitedMs)))
}

function longest(waits: readonly number[]): number | undefined {
  return waits.length === 0 ? undefined : Math.max(...waits)
}
