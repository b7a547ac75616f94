import { abortSignal, checkOptions, integer, oneOf, optional, type Rule } from '../assert.ts'
import type { Clock } from '../clock.ts'
import type { Requests } from '../store/requests.ts'
import { iterable } from './actions/action-input.ts'
import type { QueueFigures } from './queue-figures.ts'
import type { QueueSettings } from './queue-options.ts'
import { type JobInput, Packer } from './submission.ts'
import { type SubmitChoice, type SubmitSummary, Submitter } from './submitter.ts'

/** Many jobs, each with its own tenant: fields beside `jobs` are defaults for each of them. */
export interface BulkInput extends Omit<JobInput, 'payload' | 'id' | 'tenant'> {
  tenant?: never
  jobs: Iterable<JobInput> | AsyncIterable<JobInput>
}

export interface SubmitOptions {
  /** A head start (negative) or handicap of the tenant in ms; it stays until it is changed. */
  basePriority?: number
  /** Instead of the queue's. */
  whenFull?: 'wait' | 'error'
  /**
   * Aborted, nothing more is stored and the submit rejects with the reason; what was stored by then stays. Where Redis does
   * not answer, what is under way may still be stored.
   */
  signal?: AbortSignal
}

export interface SubmittedJob {
  readonly id: string
  /** False: the id was known, and nothing was stored. */
  readonly isNew: boolean
}

const submitRules = {
  basePriority: optional(integer({ min: -1e12, max: 1e12 })),
  whenFull: optional(oneOf(['wait', 'error'])),
  signal: optional(abortSignal),
}

const any: Rule<unknown> = (value) => value

const refused =
  (why: string): Rule<void> =>
  (value, path, report) => {
    if (value !== undefined) report(path, why)
  }

/** What the defaults say is checked with each job. */
const bulkRules = {
  jobs: iterable,
  type: any,
  level: any,
  lane: any,
  ordered: any,
  delayMs: any,
  runAt: any,
  cost: any,
  maxRetries: any,
  timeoutMs: any,
  payload: refused('belongs to each of the jobs'),
  id: refused('belongs to each of the jobs'),
  action: refused('needs a tenant: an action is of one'),
} satisfies Record<keyof Omit<BulkInput, 'tenant'> | 'payload' | 'id' | 'action', Rule<unknown>>

interface IntakeParts {
  readonly queue: string
  readonly clock: Clock
  readonly requests: Requests
  readonly settings: QueueSettings
  readonly figures: QueueFigures
  readonly isClosed: () => boolean
  readonly ready: () => Promise<void>
}

/** Where jobs come into a queue: one, or many from an iterable. */
export class Intake {
  readonly #parts: IntakeParts

  constructor(parts: IntakeParts) {
    this.#parts = parts
  }

  check(options: SubmitOptions | undefined) {
    return checkOptions('submit', options, submitRules)
  }

  async one(input: JobInput, chosen: ReturnType<Intake['check']>): Promise<SubmittedJob> {
    const packed = new Packer({}, this.#parts.settings.maxPayloadBytes).pack(input, undefined, this.#parts.clock.date())
    await this.#parts.ready()
    const first = await this.submitter(chosen).one(packed)
    return { id: input.id ?? `${packed.level}:${packed.lane}:${first}:${packed.tenant}`, isNew: first !== '0' }
  }

  async many(input: BulkInput, chosen: ReturnType<Intake['check']>): Promise<SubmitSummary> {
    checkOptions('submit', input, bulkRules)
    await this.#parts.ready()
    const { jobs, ...defaults } = input
    return this.submitter(chosen).all(jobs, new Packer(defaults, this.#parts.settings.maxPayloadBytes))
  }

  submitter(chosen: SubmitChoice & { basePriority?: number | undefined }): Submitter {
    const { clock, requests, queue, settings, isClosed } = this.#parts
    return new Submitter({
      clock,
      requests,
      queue,
      whenFull: chosen.whenFull ?? settings.whenFull,
      basePriority: chosen.basePriority,
      isClosed,
      signal: chosen.signal,
    })
  }

  /** What is refused is counted. */
  async counted<T>(submit: () => Promise<T>): Promise<T> {
    try {
      return await submit()
    } catch (error) {
      this.#parts.figures.failedSubmit(error)
      throw error
    }
  }
}
