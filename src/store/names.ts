/**
 * Names as they stand in Redis. A token is a tenant's or lane's name with everything escaped that has a meaning in a
 * key, so that no name can reach into another's key and two names never share one.
 */
import { hash } from 'node:crypto'
import type { Rule } from '../assert.ts'

export const levels = ['high', 'normal', 'low'] as const
export type Level = (typeof levels)[number]

export const defaultLane = 'default'
export const defaultTenant = 'default'

const longestName = 256

// A job's key is split at ':'; '!' starts an ordered lane, '@' the lane of an action; braces would be mistaken for a hash
// tag by human readers.
const special = /[:!%{}\s]|^@/
// Apart, because a global pattern remembers where its last test ended.
const everySpecial = new RegExp(special, 'g')

/** What is wrong with a name or id of the caller's, or undefined. */
export function problemOfName(name: unknown): string | undefined {
  if (typeof name !== 'string') return 'must be text'
  if (name.length < 1 || name.length > longestName)
    return `must have 1 to ${longestName} characters, not ${name.length}`
  // They separate the fields of a record, and move the cursor of whoever reads the name in a terminal: also U+0080 to U+009F.
  if (/\p{Cc}/u.test(name)) return 'must not contain control characters'
  // A URL that names one means a folder of its path, also when it is written as %2e: the request would go elsewhere.
  if (isDots(name)) return 'must not be "." or "..", which no URL can name'
  // In unicode mode this matches only a surrogate without its other half; two such names would become one in UTF-8.
  if (/\p{Surrogate}/u.test(name)) return 'must be well-formed Unicode (it has half of a surrogate pair)'
  return undefined
}

/** Whether a URL cannot have it as one part of its path. */
export function isDots(name: string): boolean {
  return name === '.' || name === '..'
}

/** A name or id of the caller's, in options. */
export const nameRule: Rule<string> = (value, path, report) => {
  const problem = problemOfName(value)
  if (problem) report(path, problem)
  return value as string
}

export function toToken(name: string): string {
  return special.test(name)
    ? name.replace(everySpecial, (character) => encodeURIComponent(character).replace('!', '%21'))
    : name
}

export function fromToken(token: string): string {
  return token.includes('%') ? decodeURIComponent(token) : token
}

/** An ordered lane is another lane than an unordered one of the same name. */
export function toLaneToken(lane: string, isOrdered: boolean): string {
  return isOrdered ? `!${toToken(lane)}` : toToken(lane)
}

/** The lane of an action: nobody else's jobs can stand in it. */
export function toActionLane(action: string, isOrdered: boolean): string {
  return `${isOrdered ? '!' : ''}@${toToken(action)}`
}

/** The token of the action whose lane this is; undefined for any other lane. */
export function actionOfLane(lane: string): string | undefined {
  const start = isOrderedLane(lane) ? 1 : 0
  return lane.charCodeAt(start) === OF_ACTION ? lane.slice(start + 1) : undefined
}

export function isOrderedLane(lane: string): boolean {
  return lane.charCodeAt(0) === ORDERED
}

const ORDERED = 33 // '!'
const OF_ACTION = 64 // '@'

/** Eighty bits of an id given within a tenant: two among a billion are equal with a chance of one in a million. */
export function idDigest(tenant: string, id: string): string {
  return hash('sha1', `${tenant}\n${id}`, 'hex').slice(0, 20)
}
