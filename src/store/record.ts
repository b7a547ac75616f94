/**
 * A job as it is stored: six lines, the last of which is the payload as JSON. The first, its history, is written by
 * scripts; it is empty until something has happened to the job. A job that costs more than one permit says so first.
 *
 *   [*cost;] history \n created (base 36, ms) \n type \n given id \n options \n payload
 */
import { detached } from './detached.ts'
import type { DeadReason, DelayReason } from './reasons.ts'

interface JobOptions {
  readonly maxRetries?: number
  readonly timeoutMs?: number
  /** How long after it was made it could start. */
  readonly delayMs?: number
}

interface JobHistory {
  /** Runs that failed. */
  readonly attempts: number
  /** Leases that ran out under it. */
  readonly stalls: number
  /** Times the upstream pushed it back. */
  readonly throttles: number
  /**
   * When it began to wait for that reason, in ms since 1970 by the clock of the store; 0: not known. Of a type that no worker
   * knows, when it was first met.
   */
  readonly since: number
  /** Why it waits, or why it died. */
  readonly reason: DelayReason | DeadReason | ''
  readonly error: JobErrorRecord | undefined
}

export interface JobErrorRecord {
  readonly name: string
  readonly message: string
  readonly stack?: string
}

export interface JobRecord {
  /** In permits. */
  readonly cost: number
  readonly history: JobHistory
  readonly createdAt: number
  readonly type: string
  readonly givenId: string | undefined
  readonly options: JobOptions
  /** JSON. */
  readonly payload: string
}

const noHistory: JobHistory = { attempts: 0, stalls: 0, throttles: 0, since: 0, reason: '', error: undefined }
const noOptions: JobOptions = {}
const ASTERISK = 42

/** What a fresh job is submitted as. */
export function encodeRecord(
  createdAt: string,
  type: string,
  givenId: string,
  options: string,
  payload: string,
  cost = 1,
): string {
  const record = `\n${createdAt}\n${type}\n${givenId}\n${options}\n${payload}`
  return cost === 1 ? record : `*${cost};${record}`
}

/** Whether it costs more than one permit. */
export function hasCost(record: string): boolean {
  return record.charCodeAt(0) === ASTERISK
}

/** What a record says behind the line that says when its job was made. */
type JobDetails = Pick<JobRecord, 'type' | 'givenId' | 'options'>

// As they were in the record before: most jobs that follow each other differ by nothing but when they were made and their
// payloads, and comparing texts costs less than cutting them. This may keep the reply of one claim in memory, and no more.
let detailsText = ''
let details: JobDetails | undefined
let createdText = ''
let createdAt = 0

/** @throws TypeError or SyntaxError for a text that is no record. Its payload is not looked at. */
export function decodeRecord(text: string): JobRecord {
  const costEnd = hasCost(text) ? text.indexOf(';') : -1
  const historyEnd = text.indexOf('\n', costEnd + 1)
  const createdEnd = text.indexOf('\n', historyEnd + 1)
  // One that is not there is looked for from the beginning again, and so is before the one it should follow.
  if (createdEnd <= historyEnd) throw notARecord(text)
  if (details === undefined || !text.startsWith(detailsText, createdEnd)) readDetails(text, createdEnd)
  const { type, givenId, options } = details as JobDetails
  return {
    cost: costEnd === -1 ? 1 : decodeCost(text.slice(1, costEnd)),
    history: historyEnd === costEnd + 1 ? noHistory : decodeHistory(text.slice(costEnd + 1, historyEnd)),
    createdAt: readCreated(text, historyEnd + 1, createdEnd),
    type,
    givenId,
    options,
    payload: text.slice(createdEnd + detailsText.length),
  }
}

/** The lines of type, id and options, with the breaks around them: what is the same text there says the same. */
function readDetails(text: string, createdEnd: number): void {
  const typeEnd = text.indexOf('\n', createdEnd + 1)
  const idEnd = text.indexOf('\n', typeEnd + 1)
  const optionsEnd = text.indexOf('\n', idEnd + 1)
  if (!(typeEnd > createdEnd && idEnd > typeEnd && optionsEnd > idEnd)) throw notARecord(text)
  details = {
    type: detached(text.slice(createdEnd + 1, typeEnd)),
    givenId: idEnd === typeEnd + 1 ? undefined : detached(text.slice(typeEnd + 1, idEnd)),
    options: optionsEnd === idEnd + 1 ? noOptions : (JSON.parse(text.slice(idEnd + 1, optionsEnd)) as JobOptions),
  }
  detailsText = text.slice(createdEnd, optionsEnd + 1)
}

function readCreated(text: string, start: number, end: number): number {
  if (createdText.length !== end - start || !text.startsWith(createdText, start)) {
    createdText = text.slice(start, end)
    createdAt = Number.parseInt(createdText, 36)
  }
  return createdAt
}

function notARecord(text: string): TypeError {
  return new TypeError(`not a job's record: ${text.slice(0, 60)}`)
}

/**
 * What can be read of a record, for whoever only shows it: one that is damaged has its history, if that can be read, no type,
 * and all of its text as the payload.
 */
export function readRecord(stored: string): JobRecord {
  try {
    const record = decodeRecord(stored)
    checkError(record.history)
    return record
  } catch (error) {
    return damagedRecord(stored, error)
  }
}

/** What stands for a record that could not be decoded. */
export function damagedRecord(stored: string, why: unknown): JobRecord {
  const payload = JSON.stringify(stored)
  return {
    cost: 1,
    history: damagedHistory(stored, why),
    createdAt: 0,
    type: '',
    givenId: undefined,
    options: noOptions,
    payload,
  }
}

function damagedHistory(stored: string, why: unknown): JobHistory {
  try {
    const history = decodeHistory(stored.slice(0, stored.indexOf('\n')).replace(/^\*\d+;/, ''))
    checkError(history)
    return history
  } catch {
    const message = `its record cannot be read: ${why instanceof Error ? why.message : String(why)}`
    return { ...noHistory, error: { name: 'Error', message } }
  }
}

/** Whoever shows an error counts on its name and message. Only damaged records have another: whoever claims one looks at neither. */
function checkError({ error }: JobHistory): void {
  if (error === undefined || (typeof error?.name === 'string' && typeof error.message === 'string')) return
  throw new TypeError(`not a job's error: ${JSON.stringify(error).slice(0, 60)}`)
}

/** A payload for whoever only shows it: one that is no JSON is shown as the text that it is. */
export function readPayload(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function decodeCost(text: string): number {
  if (!/^\d+$/.test(text)) throw new TypeError(`not a job's cost: ${text.slice(0, 60)}`)
  return Number(text)
}

function decodeHistory(text: string): JobHistory {
  // With s: JSON leaves some separators of lines as they are (U+2028), and an error may quote anything.
  const match = /^(\d+),(\d+),(\d+),(\d+),([^,]*),(.*)$/s.exec(text)
  if (!match) throw new TypeError(`not a job's history: ${text.slice(0, 60)}`)
  const [, attempts, stalls, throttles, since, reason = '', error = ''] = match
  return {
    attempts: Number(attempts),
    stalls: Number(stalls),
    throttles: Number(throttles),
    since: Number(since),
    // No script writes another.
    reason: reason as JobHistory['reason'],
    error: error === '' ? undefined : (JSON.parse(error) as JobErrorRecord),
  }
}

const longestMessage = 4096

/** An error as a record keeps it: on one line and of bounded length. Never throws, whatever was thrown. */
export function encodeError(error: unknown): string {
  try {
    if (error instanceof Error) {
      const stack = error.stack === undefined ? {} : { stack: cut(error.stack) }
      return JSON.stringify({ name: cut(String(error.name)), message: cut(String(error.message)), ...stack })
    }
    return JSON.stringify({ name: 'Error', message: cut(String(error)) })
  } catch {
    return JSON.stringify({ name: 'Error', message: 'an error that cannot be shown' })
  }
}

function cut(text: string): string {
  const whole = text.length > longestMessage ? `${text.slice(0, longestMessage)}…` : text
  return whole.replace(/\p{Surrogate}/gu, '\ufffd')
}
