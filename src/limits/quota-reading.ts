/** What an upstream's answer says is left of its budget. Pure: headers in, numbers out. */
import { type Item, type Parameters, parseDictionary, parseList } from 'structured-headers'
import {
  type AnswerHeaders,
  attempt,
  dateOf,
  firstNumberIn,
  numberIn,
  resetSpanMs,
  valuesOf,
} from './answer-headers.ts'

/** What scripts can count; nobody is told to wait for longer than a year. */
const LARGEST = 1e15
const LONGEST_MS = 366 * 86_400_000

/** A `Date` is in whole seconds, and the answer was on its way for a while. */
const DATE_HOLDS_FOR_MS = 1_500

export interface QuotaReading {
  readonly remaining: number
  /** Until the upstream starts over. */
  readonly resetInMs: number
  /** What it allows in all; undefined if it does not say. */
  readonly limit: number | undefined
}

/**
 * Undefined when the answer does not say both what is left and until when. Instants are by the upstream's clock. Of several
 * budgets the one with least left counts.
 */
export function quotaReadingOf(headers: AnswerHeaders, nowMs: number = Date.now()): QuotaReading | undefined {
  const at = upstreamNow(headers, nowMs)
  return (
    standardReading(headers) ??
    threeHeaders(headers, 'ratelimit', at) ??
    threeHeaders(headers, 'x-ratelimit', at) ??
    threeHeaders(headers, 'x-rate-limit', at) ??
    ofRequestsAndTokens(headers, at)
  )
}

/** Our clock, which is finer, while the answer's own `Date` does not contradict it. */
function upstreamNow(headers: AnswerHeaders, nowMs: number): number {
  const date = dateOf(headers) ?? nowMs
  return nowMs >= date && nowMs < date + DATE_HOLDS_FOR_MS ? nowMs : date
}

/** `RateLimit: "default";r=50;t=30` with `RateLimit-Policy: "default";q=100;w=60`, or `limit=100, remaining=50, reset=30`. */
function standardReading(headers: AnswerHeaders): QuotaReading | undefined {
  const text = valuesOf(headers, 'ratelimit').join(', ')
  if (text === '') return undefined
  if (/^\s*(limit|remaining|reset)\s*=/.test(text)) {
    const fields = attempt(() => parseDictionary(text))
    const number = (name: string) => asNumber(fields?.get(name)?.[0])
    return reading(number('remaining'), number('reset'), number('limit'))
  }
  const quotas = quotasOf(headers)
  const found = items(text).flatMap(([name, parameters]) => {
    const limit = quotas.get(String(name))
    return reading(asNumber(parameters.get('r')), asNumber(parameters.get('t')), limit) ?? []
  })
  return found.sort((a, b) => a.remaining - b.remaining)[0]
}

function quotasOf(headers: AnswerHeaders): ReadonlyMap<string, number | undefined> {
  const policies = items(valuesOf(headers, 'ratelimit-policy').join(', '))
  return new Map(policies.map(([name, parameters]) => [String(name), asNumber(parameters.get('q'))]))
}

function items(text: string): [unknown, Parameters][] {
  const list = attempt(() => parseList(text)) ?? []
  return list.map((member) => [(member as Item)[0], member[1]])
}

/** `<prefix>-Remaining`, `-Reset` or `-Reset-After`, `-Limit`: as many APIs have them that never agreed on more. */
function threeHeaders(headers: AnswerHeaders, prefix: string, nowMs: number): QuotaReading | undefined {
  const remaining = numberIn(headers, `${prefix}-remaining`)
  const after = numberIn(headers, `${prefix}-reset-after`)
  const reset = resetSpanMs(headers, `${prefix}-reset`, nowMs)
  const seconds = after ?? (reset === undefined ? undefined : reset / 1_000)
  return reading(remaining, seconds, firstNumberIn(headers, `${prefix}-limit`))
}

/**
 * Models that are paid by the token count requests and tokens apart. A job costs requests, so those are what is read:
 * `x-ratelimit-remaining-requests` with `-reset-requests: 6m0s`, or `anthropic-ratelimit-requests-remaining` with a date.
 */
function ofRequestsAndTokens(headers: AnswerHeaders, nowMs: number): QuotaReading | undefined {
  const openAi = {
    remaining: 'x-ratelimit-remaining-requests',
    reset: 'x-ratelimit-reset-requests',
    limit: 'x-ratelimit-limit-requests',
  }
  const anthropic = {
    remaining: 'anthropic-ratelimit-requests-remaining',
    reset: 'anthropic-ratelimit-requests-reset',
    limit: 'anthropic-ratelimit-requests-limit',
  }
  for (const names of [openAi, anthropic]) {
    const reset = resetSpanMs(headers, names.reset, nowMs)
    const found = reading(
      numberIn(headers, names.remaining),
      reset === undefined ? undefined : reset / 1_000,
      numberIn(headers, names.limit),
    )
    if (found) return found
  }
  return undefined
}

function reading(
  remaining: number | undefined,
  resetInSeconds: number | undefined,
  limit: number | undefined,
): QuotaReading | undefined {
  if (remaining === undefined || resetInSeconds === undefined || resetInSeconds <= 0) return undefined
  return {
    remaining: Math.min(LARGEST, Math.floor(remaining)),
    resetInMs: Math.min(LONGEST_MS, Math.ceil(resetInSeconds * 1_000)),
    limit: limit === undefined ? undefined : Math.min(LARGEST, Math.floor(limit)),
  }
}

function asNumber(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? value : undefined
}
