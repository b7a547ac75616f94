import { didYouMean } from '../assert.ts'
import { InvalidJobError } from '../errors.ts'
import { parseJobKey } from '../store/job-place.ts'
import {
  defaultLane,
  defaultTenant,
  idDigest,
  type Level,
  levels,
  problemOfName,
  toLaneToken,
  toToken,
} from '../store/names.ts'
import { encodeRecord } from '../store/record.ts'
import type { LineKind } from '../store/scripts/submit-jobs.ts'
import { jobBounds } from './job-bounds.ts'
import { payloadText } from './payload.ts'

/** One job to be submitted. */
export interface JobInput {
  /** What kind of work it is; a processor of this name runs it. */
  type?: string
  /** Anything JSON can hold. */
  payload?: unknown
  /** Submitting the same id of a tenant again is a no-op while it is known. 1–256 characters. */
  id?: string
  /** Whom it is for: the unit of fairness. @default 'default' */
  tenant?: string
  /** @default 'normal' */
  level?: Level
  /** The line it stands in; a tenant's lanes take turns. @default 'default' */
  lane?: string
  /**
   * The next job of the lane starts only when this one has ended, its retries included. It is part of what the lane is:
   * give it with every job of an ordered lane.
   * @default false
   */
  ordered?: boolean
  /** Not before this long from now. */
  delayMs?: number
  /** Not before this moment: a date, or ms since 1970. */
  runAt?: Date | number
  /** In permits of every limit it stands under, for APIs that charge by query. @default 1 */
  cost?: number
  /** Instead of the processor's or the queue's. */
  maxRetries?: number
  /** Instead of the processor's or the queue's. */
  timeoutMs?: number
}

/** A job checked and packed, with the line it goes to. */
export interface PackedJob {
  readonly tenant: string
  readonly level: Level
  readonly lane: string
  readonly kind: LineKind
  /** When it may start: '' at once, `+µs` from now or `@µs`. */
  readonly instant: string
  /** Of its given id; '' without one. */
  readonly digest: string
  readonly record: string
  /** It costs more than one permit. */
  readonly hasCost: boolean
}

const fields: Readonly<Record<keyof JobInput, true>> = {
  type: true,
  payload: true,
  id: true,
  tenant: true,
  level: true,
  lane: true,
  ordered: true,
  delayMs: true,
  runAt: true,
  cost: true,
  maxRetries: true,
  timeoutMs: true,
}

/** What a job can say. */
export const jobFieldNames = Object.keys(fields) as readonly (keyof JobInput)[]

const known: ReadonlySet<string> = new Set(jobFieldNames)

/** Where all jobs of an action stand: they cannot say otherwise. */
export interface FixedPlace {
  readonly tenant: string
  readonly level: Level
  readonly laneToken: string
}

/**
 * Checks and packs jobs that share defaults. Names are checked once and remembered: a stream has a million jobs and
 * few tenants.
 */
export class Packer {
  readonly #defaults: JobInput
  readonly #maxPayloadBytes: number
  readonly #fixed: FixedPlace | undefined
  readonly #tokens = new Map<string, string>()
  readonly #types = new Set<string>()
  /** The job that is being packed, for the error: a function made anew for every job would cost more than its checks. */
  #input: JobInput | undefined
  #index: number | undefined
  readonly #fail = (problem: string, cause?: unknown): never => {
    const id = this.#input?.id
    throw new InvalidJobError({ index: this.#index, jobId: typeof id === 'string' ? id : undefined, problem, cause })
  }

  readonly #failPayload = (problem: string, cause?: unknown): never => this.#fail(`its payload ${problem}`, cause)

  constructor(defaults: JobInput, maxPayloadBytes: number, fixed?: FixedPlace) {
    this.#defaults = fixed ? { ...defaults, tenant: fixed.tenant, level: fixed.level } : defaults
    this.#maxPayloadBytes = maxPayloadBytes
    this.#fixed = fixed
  }

  /** @param index - Its place in what was submitted, for the error. */
  pack(input: JobInput, index: number | undefined, nowMs: number): PackedJob {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw new InvalidJobError({ index, problem: 'it must be an object' })
    this.#input = input
    this.#index = index
    const fail = this.#fail
    for (const name in input) if (!known.has(name)) fail(unknownField(name))
    const defaults = this.#defaults
    const fixed = this.#fixed
    if (fixed) checkPlace(input, fail)
    const tenant = input.tenant ?? defaults.tenant ?? defaultTenant
    const level = input.level ?? defaults.level ?? 'normal'
    if (!levels.includes(level)) fail(`its level must be high, normal or low, not ${JSON.stringify(level)}`)
    const ordered = input.ordered ?? defaults.ordered ?? false
    if (typeof ordered !== 'boolean') fail('its ordered must be true or false')
    const id = input.id ?? ''
    if (input.id !== undefined) this.#checkId(input.id, fail)
    const cost = costOf(input.cost ?? defaults.cost, fail)
    const instant = instantOf(input.delayMs ?? defaults.delayMs, input.runAt ?? defaults.runAt, nowMs, fail)
    return {
      tenant: this.#token(tenant, 'tenant', fail),
      level,
      lane: fixed ? fixed.laneToken : this.#laneToken(input.lane ?? defaults.lane ?? defaultLane, ordered, fail),
      kind: instant !== '' ? 'later' : id !== '' ? 'named' : 'fresh',
      instant,
      digest: id === '' ? '' : idDigest(tenant, id),
      record: encodeRecord(
        createdText(nowMs),
        this.#type(input.type ?? defaults.type, fail),
        id,
        optionsText(
          input.maxRetries ?? defaults.maxRetries,
          input.timeoutMs ?? defaults.timeoutMs,
          delayOf(instant, nowMs),
          fail,
        ),
        payloadText(input.payload, this.#maxPayloadBytes, this.#failPayload),
        cost,
      ),
      hasCost: cost !== 1,
    }
  }

  #checkId(id: unknown, fail: (problem: string) => never): void {
    const problem = problemOfName(id)
    if (problem) fail(`its id ${problem}`)
    if (parseJobKey(id as string))
      fail('its id looks like a generated one (level:lane:number:tenant); choose another form')
  }

  #token(name: string, what: string, fail: (problem: string) => never): string {
    const token = this.#tokens.get(name)
    if (token !== undefined) return token
    const problem = problemOfName(name)
    if (problem) fail(`its ${what} ${problem}`)
    return remember(this.#tokens, name, toToken(name))
  }

  #laneToken(lane: string, isOrdered: boolean, fail: (problem: string) => never): string {
    if (!isOrdered) return this.#token(lane, 'lane', fail)
    this.#token(lane, 'lane', fail)
    return toLaneToken(lane, true)
  }

  #type(type: unknown, fail: (problem: string) => never): string {
    if (this.#types.has(type as string)) return type as string
    const problem = type === undefined ? 'is missing' : problemOfName(type)
    if (problem) fail(`its type ${problem}`)
    if (this.#types.size < 1000) this.#types.add(type as string)
    return type as string
  }
}

function unknownField(name: string): string {
  return `it has an unknown field ${JSON.stringify(name)}${didYouMean(name, jobFieldNames)}`
}

function checkPlace(input: JobInput, fail: (problem: string) => never): void {
  for (const field of ['tenant', 'level', 'lane', 'ordered'] as const) {
    if (input[field] !== undefined) fail(`it has a ${field}, which its action says for all of its jobs`)
  }
}

const rememberedTokens = 10_000

function remember(tokens: Map<string, string>, name: string, token: string): string {
  if (tokens.size >= rememberedTokens) tokens.clear()
  tokens.set(name, token)
  return token
}

let createdMs = 0
let created = ''

/** The same text for all jobs of one millisecond. */
function createdText(nowMs: number): string {
  if (nowMs !== createdMs) {
    createdMs = nowMs
    created = nowMs.toString(36)
  }
  return created
}

function instantOf(delayMs: unknown, runAt: unknown, nowMs: number, fail: (problem: string) => never): string {
  if (delayMs === undefined && runAt === undefined) return ''
  if (delayMs !== undefined && runAt !== undefined) fail('it has both delayMs and runAt; give one')
  if (delayMs !== undefined) {
    if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs <= jobBounds.delayMs)) {
      fail(`its delayMs must be a number from 0 to ${jobBounds.delayMs}`)
    }
    return delayMs === 0 ? '' : `+${Math.round((delayMs as number) * 1000)}`
  }
  const ms = runAt instanceof Date ? runAt.getTime() : runAt
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= nowMs + jobBounds.delayMs)) {
    fail('its runAt must be a date, or ms since 1970, at most a year ahead')
  }
  return `@${Math.round((ms as number) * 1000)}`
}

/** In whole ms from now, for whoever measures how long the job waited once it could start. */
function delayOf(instant: string, nowMs: number): number | undefined {
  if (instant === '') return undefined
  const ms = Math.round(Number(instant.slice(1)) / 1000)
  return instant.startsWith('+') ? ms : Math.max(0, ms - nowMs)
}

function costOf(cost: unknown, fail: (problem: string) => never): number {
  if (cost === undefined) return 1
  if (!isWithin(cost, 1, jobBounds.cost)) return fail(`its cost must be a whole number from 1 to ${jobBounds.cost}`)
  return cost
}

function isWithin(value: unknown, least: number, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
}

function optionsText(
  maxRetries: unknown,
  timeoutMs: unknown,
  delayMs: number | undefined,
  fail: (problem: string) => never,
): string {
  if (maxRetries === undefined && timeoutMs === undefined && delayMs === undefined) return ''
  if (maxRetries !== undefined && !isWithin(maxRetries, 0, jobBounds.maxRetries)) {
    fail(`its maxRetries must be a whole number from 0 to ${jobBounds.maxRetries}`)
  }
  if (timeoutMs !== undefined && !isWithin(timeoutMs, 1, jobBounds.timeoutMs)) {
    fail(`its timeoutMs must be a whole number from 1 to ${jobBounds.timeoutMs}`)
  }
  return JSON.stringify({ maxRetries, timeoutMs, delayMs })
}
