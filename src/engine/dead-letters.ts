import { checkOptions, integer, optional, text } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { InvalidOptionsError } from '../errors.ts'
import { parseJobKey } from '../store/job-place.ts'
import type { QueueKeys } from '../store/keys.ts'
import { decodePlace, encodePlace, LONGEST_PLACE, placePattern } from '../store/letter-place.ts'
import type { Level } from '../store/names.ts'
import type { DeadReason } from '../store/reasons.ts'
import { type JobErrorRecord, readPayload } from '../store/record.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { type FoundLetter, readDeadLetters } from '../store/scripts/read-dead-letters.ts'
import { takeDeadLetter } from '../store/scripts/take-dead-letter.ts'
import { type DeadLetterFilter, LetterSweep, type SweepOptions, type SweepVerb } from './letter-sweep.ts'
import { payloadText } from './payload.ts'

/** A job that will not be tried again by itself, kept with its reason. */
export interface DeadLetter {
  /** Names the letter, also where the job has an id of its own. */
  readonly key: string
  readonly id: string
  readonly tenant: string
  readonly level: Level
  readonly lane: string
  /** The name of the action it was submitted with. */
  readonly action: string | undefined
  readonly type: string
  readonly payload: unknown
  readonly reason: DeadReason
  readonly error: JobErrorRecord | undefined
  /** Runs that failed. */
  readonly attempts: number
  readonly createdAt: number
  readonly diedAt: number
}

const pageRules = {
  cursor: optional(text({ maxLength: LONGEST_PLACE, pattern: { test: placePattern, words: 'the cursor of a page' } })),
  count: integer({ min: 1, max: 500, default: 50 }),
}

export class DeadLetters {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  readonly #ready: () => Promise<void>
  readonly #readable: () => Promise<void>
  readonly #requests: Requests
  readonly #clock: Clock
  readonly #maxPayloadBytes: number

  /** Made by the queue. */
  constructor(parts: {
    redis: Redis
    keys: QueueKeys
    requests: Requests
    clock: Clock
    maxPayloadBytes: number
    ready: () => Promise<void>
    /** The same for whoever only looks. */
    readable: () => Promise<void>
  }) {
    this.#clock = parts.clock
    this.#maxPayloadBytes = parts.maxPayloadBytes
    this.#redis = parts.redis
    this.#keys = parts.keys
    this.#ready = parts.ready
    this.#readable = parts.readable
    this.#requests = parts.requests
  }

  /**
   * A page of them, newest first, and how many there are. Behind it goes on who gives its `cursor`, whatever goes away
   * meanwhile; undefined: there are no more. A page of large ones is shorter than `count`.
   */
  async list(
    page: { cursor?: string | undefined; count?: number } = {},
  ): Promise<{ total: number; letters: DeadLetter[]; cursor: string | undefined }> {
    const { cursor, count } = checkOptions('deadLetters.list', page, pageRules)
    await this.#readable()
    const after = decodePlace(cursor ?? '')
    const { total, rows, isMore } = await readDeadLetters(this.#redis, this.#keys, { after, count })
    const last = rows.at(-1)?.place
    return {
      total,
      letters: rows.flatMap(({ letter }) => toLetter(letter)),
      cursor: isMore && last ? encodePlace(last) : undefined,
    }
  }

  /** The job runs again, as if fresh; with another payload where one is given. False: there is no such letter. */
  async retry(key: string, options: { payload?: unknown } = {}): Promise<boolean> {
    checkOptions('deadLetters.retry', options, { payload: (payload: unknown) => payload })
    const take = {
      jobKey: key,
      retries: true,
      ...('payload' in options ? { payload: this.#pack(options.payload) } : {}),
    }
    await this.#ready()
    return (await takeDeadLetter(this.#requests, take)) === 'retried'
  }

  #pack(payload: unknown): string {
    return payloadText(payload, this.#maxPayloadBytes, (problem) => {
      throw new InvalidOptionsError('deadLetters.retry', [{ path: 'payload', problem }])
    })
  }

  /**
   * The jobs of all letters that fit run again, oldest first. Letters that die from now on are left alone. It goes on in this
   * process until it is done or aborted; what it has not come to stays a dead letter.
   */
  retryAll(filter: DeadLetterFilter, options: SweepOptions = {}): LetterSweep {
    return this.#sweep('retry', filter, options)
  }

  /** All letters that fit are discarded for good, oldest first. */
  discardAll(filter: DeadLetterFilter, options: SweepOptions = {}): LetterSweep {
    return this.#sweep('discard', filter, options)
  }

  /** Counts all letters that fit, as `taken`; nothing is changed. */
  countAll(filter: DeadLetterFilter, options: SweepOptions = {}): LetterSweep {
    return this.#sweep('count', filter, options)
  }

  /** How many letters fit; nothing is changed. */
  async count(filter: DeadLetterFilter): Promise<number> {
    return (await this.countAll(filter).finished).taken
  }

  #sweep(verb: SweepVerb, filter: DeadLetterFilter, options: SweepOptions): LetterSweep {
    return new LetterSweep({ verb, filter, options, requests: this.#requests, clock: this.#clock })
  }

  /** The job is gone for good; `queue.job` shows it as cancelled from then on. False: there is no such letter. */
  async discard(key: string): Promise<boolean> {
    await this.#ready()
    return (await takeDeadLetter(this.#requests, { jobKey: key, retries: false })) === 'discarded'
  }
}

/** None where there is nothing to show. */
export function toLetter(found: FoundLetter | undefined): DeadLetter[] {
  const place = found && parseJobKey(found.jobKey)
  if (!place) return []
  const { jobKey, diedAt, reason, record } = found
  return [
    {
      key: jobKey,
      id: record.givenId ?? jobKey,
      tenant: place.tenant,
      level: place.level,
      lane: place.lane,
      action: place.action,
      type: record.type,
      payload: readPayload(record.payload),
      reason,
      error: record.history.error,
      attempts: record.history.attempts,
      createdAt: record.createdAt,
      diedAt,
    },
  ]
}
