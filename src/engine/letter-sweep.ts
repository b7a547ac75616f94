import { abortSignal, checkOptions, integer, number, oneOf, optional, parsed, text } from '../assert.ts'
import type { Clock } from '../clock.ts'
import { InvalidOptionsError } from '../errors.ts'
import { parseLimit } from '../limits/definition.ts'
import { decodePlace, encodePlace, type LetterPlace, LONGEST_PLACE } from '../store/letter-place.ts'
import type { LetterFilter, LetterSearch, SearchReply } from '../store/letter-search.ts'
import { nameRule, toToken } from '../store/names.ts'
import { type DeadReason, deadReasons } from '../store/reasons.ts'
import type { Requests } from '../store/requests.ts'
import { readDeadLetterCount } from '../store/scripts/read-dead-letter-count.ts'
import { sweepDeadLetters } from '../store/scripts/sweep-dead-letters.ts'
import { farthestMs } from './moment.ts'
import { SweepPace } from './sweep-pace.ts'

/** Which dead letters are meant: those that fit all that is given. At least one must be; `all: true` means every letter. */
export interface DeadLetterFilter {
  tenant?: string
  /** Type of the job. */
  type?: string
  /** Name of the action it was submitted with. */
  action?: string
  /** Why it died. */
  reason?: DeadReason
  /** Text that the message of its error contains. */
  error?: string
  /** Died then or later, in ms since 1970. */
  since?: number
  /** Died then or earlier; never after the sweep began. @default now */
  until?: number
  all?: true
}

export interface SweepOptions {
  /** How fast letters are taken: '50/s'. It holds over all that go on with a cursor. As fast as it goes unless given. */
  rate?: string
  /** Take so many at most. */
  limit?: number
  /** Go on where an earlier one with the same filter ended: its `progress.cursor`. */
  cursor?: string
  /** Ends it after the step under way. */
  signal?: AbortSignal
}

/** How far it is. */
export interface SweepProgress {
  readonly looked: number
  readonly taken: number
  /** Dead letters that there are, whatever the filter; undefined before the first step. */
  readonly left: number | undefined
  /** Where it goes on; undefined: all were looked at. */
  readonly cursor: string | undefined
}

export type SweepVerb = 'retry' | 'discard' | 'count'

const name = optional(nameRule)

const filterRules = {
  tenant: name,
  type: name,
  action: name,
  reason: optional(oneOf(deadReasons)),
  error: optional(text({ maxLength: 1_000 })),
  since: optional(number({ min: 0, max: farthestMs })),
  until: optional(number({ min: 0, max: farthestMs })),
  all: optional(oneOf([true])),
}

// The place of the last letter looked at; up to when (nothing before the first step); when the next is earned (nothing without a
// rate).
const cursorPattern = /^(\d{1,16}\.[\w-]*)\.(\d{0,16})\.(\d{0,16})$/
/** Of a place and two instants. */
export const LONGEST_CURSOR = LONGEST_PLACE + 40

const optionRules = {
  rate: optional(parsed((value) => perMsOf(value))),
  limit: optional(integer({ min: 1 })),
  cursor: optional(
    text({ maxLength: LONGEST_CURSOR, pattern: { test: cursorPattern, words: 'the cursor of an earlier sweep' } }),
  ),
  signal: optional(abortSignal),
}

// A step reads the letters whose place fits: so many block Redis for about a millisecond.
const LOOKED_AT_ONCE = 200
// At a given rate letters are taken so often; more often only costs requests.
const PACE_MS = 100

function perMsOf(rate: unknown): number {
  const rule = parseLimit('rate', rate)
  if (rule.kind !== 'bucket') throw new Error('must be a rate such as 50/s')
  return rule.count / (rule.window / 1000)
}

/** Dead letters that are retried or discarded by filter: under way, with progress, until it is done or aborted. */
export class LetterSweep {
  /** Resolves with the last progress when it is done, aborted or has taken `limit`; rejects when the store fails. */
  readonly finished: Promise<SweepProgress>
  readonly #verb: SweepVerb
  readonly #requests: Requests
  readonly #clock: Clock
  readonly #filter: LetterFilter
  readonly #options: { limit?: number | undefined; signal?: AbortSignal | undefined }
  readonly #pace: SweepPace | undefined
  #to: string
  #last: LetterPlace | undefined
  #looked = 0
  #taken = 0
  #left: number | undefined
  #isAborted = false
  #wake: () => void = () => {}

  /** Made by `queue.deadLetters`. */
  constructor(parts: {
    verb: SweepVerb
    filter: DeadLetterFilter
    options: SweepOptions
    requests: Requests
    clock: Clock
  }) {
    const { tenant, type, action, reason, error, since, until, all } = checkOptions(
      'dead letters',
      parts.filter,
      filterRules,
    )
    if ([tenant, type, action, reason, error, since, until, all].every((value) => value === undefined)) {
      throw new InvalidOptionsError('dead letters', [
        { path: 'filter', problem: 'must say which; { all: true } means all' },
      ])
    }
    const { cursor, rate, ...options } = checkOptions('dead letters', parts.options, optionRules)
    const [, place = '', to, nextAt = ''] = cursorPattern.exec(cursor ?? '') ?? []
    this.#verb = parts.verb
    this.#requests = parts.requests
    this.#clock = parts.clock
    this.#options = options
    // Counting takes nothing from anybody: it goes as fast as it can.
    if (rate !== undefined && parts.verb !== 'count') {
      this.#pace = new SweepPace(parts.clock, rate, nextAt === '' ? undefined : Number(nextAt))
    }
    this.#filter = {
      tenant: tenant === undefined ? '' : toToken(tenant),
      type: type ?? '',
      action: action === undefined ? '' : toToken(action),
      reason: reason ?? '',
      error: error ?? '',
    }
    this.#last = decodePlace(place) ?? { died: micros(since, '0'), jobKey: '' }
    // The first step puts it at its own moment at the latest: a job that is retried and dies again is not taken twice.
    this.#to = to ?? micros(until, '')
    this.finished = this.#run()
    // Whoever only looks at the progress finds it there; an error is for those who wait.
    this.finished.catch(() => {})
  }

  get progress(): SweepProgress {
    const cursor = this.#last && `${encodePlace(this.#last)}.${this.#to}.${this.#pace?.nextAt ?? ''}`
    return { looked: this.#looked, taken: this.#taken, left: this.#left, cursor }
  }

  /** Ends it after the step under way. What was done stays done; `progress.cursor` says where to go on. */
  abort(): void {
    this.#isAborted = true
    this.#wake()
  }

  async #run(): Promise<SweepProgress> {
    const { limit = Number.POSITIVE_INFINITY, signal } = this.#options
    const onAbort = () => this.abort()
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) this.abort()
    try {
      while (this.#last && !this.#isAborted && this.#taken < limit) {
        const earned = this.#pace?.earned() ?? LOOKED_AT_ONCE
        const most = Math.min(LOOKED_AT_ONCE, earned, limit - this.#taken)
        if (most < 1) await this.#pause(Math.max(PACE_MS, this.#pace?.waitMs() ?? 0))
        else await this.#step(this.#last, most)
      }
      return this.progress
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  }

  async #step(after: LetterPlace, most: number): Promise<void> {
    const reply = await this.#search({ after, to: this.#to, filter: this.#filter, looks: LOOKED_AT_ONCE, most })
    this.#looked += reply.looked
    this.#taken += reply.taken
    this.#pace?.take(reply.taken)
    this.#left = reply.left
    this.#last = reply.last
    this.#to = reply.to
  }

  #search(search: LetterSearch): Promise<SearchReply> {
    return this.#verb === 'count'
      ? readDeadLetterCount(this.#requests, search)
      : sweepDeadLetters(this.#requests, this.#verb, search)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.setTimer(resolve, ms)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }
}

/** Nothing dies later than the largest: it has as many digits as a cursor may have. */
function micros(ms: number | undefined, otherwise: string): string {
  return ms === undefined ? otherwise : String(Math.min(Math.floor(ms * 1000), Number.MAX_SAFE_INTEGER))
}
