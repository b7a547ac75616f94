import { InvalidOptionsError } from '../errors.ts'
import type { Level } from '../store/names.ts'
import { encodeError } from '../store/record.ts'
import type { Finish } from '../store/scripts/finish-and-claim.ts'
import type { LeasedJob } from './job.ts'
import type { Handler } from './job-run.ts'
import type { Log } from './log.ts'

export interface Processor {
  readonly handler: Handler
  readonly timeoutMs: number
  /** It is the processor's own, and not that of the queue. */
  readonly isTimeoutGiven?: boolean
  readonly maxRetries: number
  /** The limit that learns from the upstream's answers; undefined: the narrowest. */
  readonly upstream: string | undefined
}

/** What one processor wants of the pool that it shares with the others of its queue. */
export interface Hands {
  readonly concurrency: number
  /** False: it is only the default. */
  readonly isConcurrencyGiven: boolean
  readonly levels: readonly Level[]
}

const UNKNOWN_TYPE_DELAY_MS = 30_000
// Types are the submitter's choice: whoever makes one for each job fills neither the log nor the memory.
const MOST_UNKNOWN_TYPES = 50

/** The processors of one process for one queue, and the hands they share. */
export class Processors {
  readonly #queue: string
  readonly #unknownTypeMs: number
  readonly #log: Log
  /** Of the limits that this process gives the queue. */
  readonly #limitNames: readonly string[]
  readonly #byType = new Map<string, Processor>()
  readonly #unknownTypes = new Set<string>()
  readonly #unknownUpstreams = new Set<string>()
  #concurrency = 0
  #isConcurrencyGiven = false
  #levels = ''

  constructor(options: { queue: string; unknownTypeMs: number; limitNames: readonly string[]; log: Log }) {
    this.#queue = options.queue
    this.#unknownTypeMs = options.unknownTypeMs
    this.#limitNames = options.limitNames
    this.#log = options.log
  }

  /** Jobs that run at once. */
  get concurrency(): number {
    return this.#concurrency
  }

  /** Those served, separated by spaces. */
  get levels(): string {
    return this.#levels
  }

  add(type: string, processor: Processor, hands: Hands): void {
    const levels = hands.levels.join(' ')
    if (this.#byType.size > 0 && levels !== this.#levels) {
      const problem = `must be those that this process has given before (${this.#levels}): the queue "${this.#queue}" has one pool in it. Serve other levels in another process`
      throw new InvalidOptionsError(`process("${type}")`, [{ path: 'levels', problem }])
    }
    this.#byType.set(type, processor)
    this.#agreeOn(hands)
    this.#levels = levels
    if (processor.upstream !== undefined) this.#lookForUpstream(type, processor.upstream)
  }

  of(type: string): Processor | undefined {
    return this.#byType.get(type)
  }

  /** Of those that were given the largest; a default outbids nobody who has chosen. */
  #agreeOn({ concurrency, isConcurrencyGiven }: Hands): void {
    const isFirstGiven = isConcurrencyGiven && !this.#isConcurrencyGiven
    if (isFirstGiven) this.#concurrency = concurrency
    else if (isConcurrencyGiven === this.#isConcurrencyGiven) {
      this.#concurrency = Math.max(this.#concurrency, concurrency)
    }
    this.#isConcurrencyGiven ||= isConcurrencyGiven
  }

  /** What becomes of a job that nobody here can run: another process may know its type, now or after a deploy. */
  endOfUnknown(job: LeasedJob): Finish {
    this.#sayUnknown(job.type)
    const { since, reason } = job.record.history
    const unknownSince = reason === 'unknown-type' ? since : 0
    // Both by the clock of the store, which a fence is made of: this process's may be hours wrong.
    const claimedAt = Number(job.fence) / 1000
    if (unknownSince > 0 && claimedAt - unknownSince >= this.#unknownTypeMs) {
      const error = encodeError(new Error(`no worker knew the type "${job.type}"`))
      return { outcome: 'dead', reason: 'unknown-type', error }
    }
    return { outcome: 'unknown', delayMs: UNKNOWN_TYPE_DELAY_MS }
  }

  /** Where this process gives no limits, others have declared them and know what they are called. */
  #lookForUpstream(type: string, upstream: string): void {
    const names = this.#limitNames
    if (names.length === 0 || names.includes(upstream) || this.#unknownUpstreams.has(upstream)) return
    this.#unknownUpstreams.add(upstream)
    this.#log({
      level: 'warn',
      event: 'worker.unknown-upstream',
      message:
        `The upstream of process("${type}") is the limit "${upstream}", which is none of those given to the queue "${this.#queue}" ` +
        `(${names.join(', ')}). When it pushes back, a limit of that name learns where a tenant has one of its own or one was added ` +
        'while running; where there is none, nothing slows down.',
      upstream,
    })
  }

  #sayUnknown(type: string): void {
    if (this.#unknownTypes.has(type) || this.#unknownTypes.size >= MOST_UNKNOWN_TYPES) return
    this.#unknownTypes.add(type)
    const isLast = this.#unknownTypes.size === MOST_UNKNOWN_TYPES
    const more = isLast ? ' There may be more such types: no others are named.' : ''
    this.#log({
      level: 'warn',
      event: 'worker.unknown-type',
      message: `No processor for jobs of type "${type}" of queue "${this.#queue}" in this process; they come again in 30 s.${more}`,
      type,
    })
  }
}
