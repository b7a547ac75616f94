import { isSluiceError, type QueueFullError } from '../errors.ts'
import { Histogram } from '../store/histogram.ts'
import type { Level } from '../store/names.ts'
import type { Finish } from '../store/scripts/finish-and-claim.ts'
import type { LeasedJob } from './job.ts'

const waitSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600]
const runSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
/** 0 for claims that brought nothing. */
const claimSizes = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500]

/** Whoever claims for itself may meet any type that was submitted: those beyond so many are counted together. */
const MOST_TYPES = 50
const OTHER_TYPES = 'other'

/** How a run ended. */
const outcomes = { succeeded: 'succeeded', retry: 'retried', throttled: 'throttled', dead: 'dead' } as const

type RunOutcome = (typeof outcomes)[keyof typeof outcomes]

export type RunTimes = Partial<Record<RunOutcome, Histogram>>

/** Why a submit was refused. */
export const refusals = [
  'invalid',
  'queue-full',
  'tenant-full',
  'action-closed',
  'out-of-memory',
  'unavailable',
] as const

export type Refusal = (typeof refusals)[number]

/** What this process has seen of a queue since it started. Every job comes by here twice: it must cost next to nothing. */
export class QueueFigures {
  /** From when a job could start (it was submitted, or its delay was over) until its first run, in seconds. */
  readonly waits: Readonly<Record<Level, Histogram>> = {
    high: new Histogram(waitSeconds),
    normal: new Histogram(waitSeconds),
    low: new Histogram(waitSeconds),
  }
  /** Jobs that a claim brought. */
  readonly claims = new Histogram(claimSizes)
  readonly refused: Readonly<Record<Refusal, number>>
  readonly #refused: Record<Refusal, number>
  readonly #runs = new Map<string, RunTimes>()

  constructor() {
    this.#refused = Object.fromEntries(refusals.map((reason) => [reason, 0])) as Record<Refusal, number>
    this.refused = this.#refused
  }

  /** How long handlers took by the type of their job and how it ended, in seconds. */
  get runs(): ReadonlyMap<string, RunTimes> {
    return this.#runs
  }

  /** Only a first run has waited in line from its submission on: what came back has run, or was pushed back, meanwhile. */
  started(job: LeasedJob, nowMs: number): void {
    const { history, createdAt, options } = job.record
    if (history.reason !== '') return
    const waitedMs = nowMs - createdAt - (options.delayMs ?? 0)
    // Clocks of two machines differ.
    this.waits[job.standing].observe(waitedMs > 0 ? waitedMs / 1000 : 0)
  }

  ended(type: string, { outcome }: Finish, durationMs: number): void {
    if (!(outcome in outcomes)) return
    const times = this.#runs.get(type) ?? this.#timesOfNew(type)
    const name = outcomes[outcome as keyof typeof outcomes]
    let histogram = times[name]
    if (!histogram) {
      histogram = new Histogram(runSeconds)
      times[name] = histogram
    }
    histogram.observe(durationMs / 1000)
  }

  #timesOfNew(type: string): RunTimes {
    const name = this.#runs.size < MOST_TYPES ? type : OTHER_TYPES
    const times = this.#runs.get(name) ?? {}
    this.#runs.set(name, times)
    return times
  }

  /** A submit failed: counted if it was refused, and not for what its producer itself has thrown. */
  failedSubmit(error: unknown): void {
    const reason = isSluiceError(error) ? refusalOf(error) : undefined
    if (reason) this.#refused[reason] += 1
  }
}

function refusalOf(error: { readonly code: string }): Refusal | undefined {
  switch (error.code) {
    case 'SLUICE_INVALID_JOB':
    case 'SLUICE_INVALID_OPTIONS':
      return 'invalid'
    case 'SLUICE_QUEUE_FULL':
      return (error as QueueFullError).tenant === undefined ? 'queue-full' : 'tenant-full'
    case 'SLUICE_ACTION_CLOSED':
    case 'SLUICE_ACTION_TAKEN':
      return 'action-closed'
    case 'SLUICE_STORE_OUT_OF_MEMORY':
      return 'out-of-memory'
    case 'SLUICE_STORE_UNAVAILABLE':
    case 'SLUICE_OUTCOME_UNKNOWN':
      return 'unavailable'
    default:
      return undefined
  }
}
