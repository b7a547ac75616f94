/** Headers of an upstream's answer, and what numbers and dates in them mean. */

/** Header names in lower case; a header that came several times is a list. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** Larger numbers of seconds in a reset header are an instant, not a span: three years. */
const LONGEST_SPAN_S = 100_000_000

/** Larger numbers are an instant in milliseconds; in seconds this is the year 5138. */
const LARGEST_INSTANT_S = 100_000_000_000

/** The three forms of RFC 9110; the one without a zone is in UTC, which Date.parse would not know. */
export function parseHttpDate(text: string): number | undefined {
  const isHttpDate = /^[A-Za-z]{3,9},? .*\d\d:\d\d:\d\d/.test(text)
  const at = isHttpDate ? Date.parse(/ (GMT|UTC)$/.test(text) ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(at) ? undefined : at
}

/** When the upstream sent it, by its own clock. */
export function dateOf(headers: AnswerHeaders): number | undefined {
  const [date] = valuesOf(headers, 'date')
  return date === undefined ? undefined : parseHttpDate(date)
}

export function numberIn(headers: AnswerHeaders, name: string): number | undefined {
  const [value] = valuesOf(headers, name)
  return value !== undefined && /^\d{1,15}(\.\d+)?$/.test(value) ? Number(value) : undefined
}

/** `100`, and of `100, 100;w=60` (what it allows in several windows) the first. */
export function firstNumberIn(headers: AnswerHeaders, name: string): number | undefined {
  const [value] = valuesOf(headers, name)
  const [, first] = /^(\d{1,15})(\.\d+)?(?=$|\s*[,;])/.exec(value ?? '') ?? []
  return first === undefined ? undefined : Number(first)
}

/**
 * How long until a reset: a number (see `spanMs`), a date of ISO 8601 (Atlassian, Anthropic) or a span in words of Go
 * (`6m0s`, `120ms`: OpenAI and its like).
 */
export function resetSpanMs(headers: AnswerHeaders, name: string, nowMs: number): number | undefined {
  const number = numberIn(headers, name)
  if (number !== undefined) return spanMs(number, nowMs)
  const [value = ''] = valuesOf(headers, name)
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value)) {
    const at = Date.parse(value)
    return Number.isNaN(at) ? undefined : at - nowMs
  }
  return spanInWords(value)
}

const unitMs: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

function spanInWords(text: string): number | undefined {
  if (!/^(\d{1,9}(\.\d+)?(d|h|ms|m|s))+$/.test(text)) return undefined
  let sum = 0
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(d|h|ms|m|s)/g))
    sum += Number(amount) * (unitMs[unit ?? ''] ?? 0)
  return sum
}

export function valuesOf(headers: AnswerHeaders, name: string): string[] {
  const value = headers[name]
  const values = value === undefined ? [] : typeof value === 'string' ? [value] : value
  return values.map((each) => each.trim())
}

/** A reset is a span in seconds, or an instant in seconds or milliseconds: its size tells. */
function spanMs(reset: number, nowMs: number): number {
  if (reset <= LONGEST_SPAN_S) return reset * 1_000
  return (reset <= LARGEST_INSTANT_S ? reset * 1_000 : reset) - nowMs
}

/** A header that cannot be read says nothing. */
export function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}
