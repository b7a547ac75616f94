import { InvalidArgumentError } from 'commander'
import { parseMoment } from '../engine/moment.ts'
import { parseLimit } from '../limits/definition.ts'
import { CliError } from './cli-error.ts'
import { parseDuration } from './duration.ts'

/** Parsers of option values, for commander: what they throw is told as a usage error of the option. */

export function wholeNumber({ min, max }: { min: number; max: number }): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (/^\d+$/.test(text) && value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`)
  }
}

export function decimal({ min, max }: { min: number; max: number }): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && value >= min && value <= max) return value
    throw new InvalidArgumentError(`It must be a number from ${min} to ${max}.`)
  }
}

/** `500/s`, kept as text: the library reads it again. */
export function rate(text: string): string {
  try {
    parseLimit('rate', text)
  } catch (error) {
    throw new InvalidArgumentError(`It ${(error as Error).message}.`)
  }
  return text
}

/** The same for a rate that is part of something else. */
export function rateIn(place: string, text: string): string {
  try {
    return rate(text)
  } catch (error) {
    throw new CliError('usage', `${place}: ${(error as Error).message}`)
  }
}

// Timers count in 31 bits of ms, which is a little more: one that is set for longer ends at once.
const LONGEST_DAYS = 24

/** `30s`, `5min`; in ms, and no longer than a timer can wait. */
export function duration(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw new InvalidArgumentError('It must be a time such as 30s, 5min or 250ms.')
  if (ms > LONGEST_DAYS * 86_400_000) throw new InvalidArgumentError(`It must be ${LONGEST_DAYS}d or shorter.`)
  return ms
}

/** A date of ISO 8601, midnight in UTC, or with a time, which is that of this machine unless it names a zone; in ms since 1970. */
export function moment(text: string): number {
  const found = parseMoment(text)
  if (!found) throw new InvalidArgumentError('It must be a date such as 2026-01-31 or 2026-01-31T12:00:00Z.')
  return found.ms
}

/** What a header of HTTP can hold. */
export function headerText(text: string): string {
  if (!/^[\x20-\x7e]{1,256}$/.test(text)) throw new InvalidArgumentError('It must be printable ASCII.')
  return text
}

/** `a,b,c`; may be given more than once. */
export function commaList(text: string, before: readonly string[] = []): string[] {
  const names = text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')
  return [...before, ...names]
}
