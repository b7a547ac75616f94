import { type Rule, show } from '../assert.ts'
import { parseDuration } from '../engine/duration.ts'

/** Rules for what a plan in JSON has and options in code do not: times as text, and lists. */

const LONGEST_MS = 366 * 86_400_000

/** `90ms`, `30s`, `24h`; in µs. */
export const time: Rule<number> = (value, path, report) => {
  if (value === undefined) report(path, 'is required')
  else if (timeOf(value) === undefined)
    report(path, `must be a time such as "90ms", "30s", "15min", "24h" or "7d", at most 366 days, not ${show(value)}`)
  return timeOf(value) ?? 0
}

function timeOf(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? parseDuration(value) : undefined
  return ms === undefined || ms > LONGEST_MS ? undefined : ms * 1000
}

export function withDefault<T>(rule: Rule<T>, otherwise: T): Rule<T> {
  return (value, path, report) => (value === undefined ? otherwise : rule(value, path, report))
}

/** At least one. */
export function listOf<T>(rule: Rule<T>): Rule<readonly T[]> {
  return (value, path, report) => {
    if (value === undefined) report(path, 'is required')
    else if (!Array.isArray(value) || value.length === 0) report(path, `must be a list that is not empty`)
    return Array.isArray(value) ? value.map((each, at) => rule(each, `${path}[${at}]`, report)) : []
  }
}

/** One of them alone, or a list of them. */
export function oneOrMore<T>(rule: Rule<T>): Rule<readonly T[]> {
  return (value, path, report) =>
    value === undefined || Array.isArray(value) ? listOf(rule)(value, path, report) : [rule(value, path, report)]
}

/** Which fields tell one form of an object from another; of several forms the first that has its field. */
export function formOf<Form extends string>(value: unknown, forms: readonly Form[]): Form | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return forms.find((form) => form in value)
}
