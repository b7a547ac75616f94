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
  return value !== undefined && /^\d+(\.\d+)?$/.test(value) ? Number(value) : undefined
}

export function valuesOf(headers: AnswerHeaders, name: string): string[] {
  const value = headers[name]
  const values = value === undefined ? [] : typeof value === 'string' ? [value] : value
  return values.map((each) => each.trim())
}

/** A reset is a span in seconds, or an instant in seconds or milliseconds: its size tells. */
export function spanMs(reset: number, nowMs: number): number {
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
