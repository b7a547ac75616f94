import { type Clock, systemClock } from '../clock.ts'
import { ActionClosedError, ClosedError, InvalidJobError, InvalidOptionsError, QueueFullError } from '../errors.ts'
import { actionOfLane, fromToken } from '../store/names.ts'
import { decodeRecord } from '../store/record.ts'
import { repeatWhileUnavailable } from '../store/repeat.ts'
import type { Requests } from '../store/requests.ts'
import { readCounts } from '../store/scripts/read-counts.ts'
import { readSettings } from '../store/scripts/read-settings.ts'
import {
  type CostlyJob,
  entriesPerJob,
  type LineKind,
  type SubmitLine,
  submitJobs,
} from '../store/scripts/submit-jobs.ts'
import type { SettingValues } from '../store/settings.ts'
import { pauseFor } from './pause-for.ts'
import type { JobInput, PackedJob, Packer } from './submission.ts'

// One script carries at most this much: it must not block Redis for more than a few ms. A job with an id of its own
// costs about twice as much as one without, a line about eight times.
const MAX_JOBS = 1_000
const MAX_COST = 2_000
const MAX_BYTES = 512_000
const COST_OF_LINE = 6
const COST: Readonly<Record<LineKind, number>> = { fresh: 1, named: 3, later: 3 }
// Jobs are gathered before they go out: a chunk's worth, and more of a stream that mixes many lines, so that a line still
// has several jobs.
const GATHERED_JOBS = 8_000
const GATHERED_BYTES = 2_000_000
const FEW_LINES = 50
// A producer that pauses does not keep what it has produced waiting for longer.
const LINGER_MS = 5
/** After its signal, a submit whose store answers says within this what became of the chunk under way. */
export const SUBMIT_GRACE_MS = 500
const FULL_WAIT_MS = { first: 25, longest: 1_000 }

interface Line extends SubmitLine {
  readonly entries: string[]
  hasCosts: boolean
  /** The place of each job in what was submitted, for the error; undefined for one that was submitted alone. */
  readonly indexes: (number | undefined)[]
}

/** What a caller may choose for one submit. */
export interface SubmitChoice {
  readonly whenFull?: 'wait' | 'error' | undefined
  readonly signal?: AbortSignal | undefined
}

export interface SubmitSummary {
  readonly accepted: number
  /** Jobs whose id was known already. */
  readonly duplicates: number
}

/**
 * Sends one stream of jobs in chunks bounded in count, bytes and cost, while the next ones are being gathered. One chunk
 * is under way at a time: a repeated one could otherwise come after its successor, and a lane keeps its order.
 */
export class Submitter {
  readonly #clock: Clock
  readonly #requests: Requests
  readonly #queue: string
  readonly #whenFull: 'wait' | 'error'
  readonly #basePriority: number | undefined
  readonly #isClosed: () => boolean
  readonly #signal: AbortSignal | undefined
  #lines: Line[] = []
  /** The last line of each lane: jobs with and without ids of their own take turns, and the lane keeps its order. */
  #lineOfLane = new Map<string, Line>()
  /** The line of each tenant's last job: most tenants have one lane, and a lane's name is made of three. */
  #lineOfTenant = new Map<string, Line>()
  #lastLine: Line | undefined
  #jobs = 0
  #bytes = 0
  #accepted = 0
  #duplicates = 0
  #linger: NodeJS.Timeout | undefined
  #sending: Promise<void> = Promise.resolve()
  #failure: { readonly error: unknown } | undefined

  constructor(options: {
    clock: Clock
    requests: Requests
    queue: string
    whenFull: 'wait' | 'error'
    basePriority: number | undefined
    isClosed: () => boolean
    /** Aborted: nothing more is sent, and nobody waits for room. */
    signal?: AbortSignal | undefined
  }) {
    this.#clock = options.clock
    this.#requests = options.requests
    this.#queue = options.queue
    this.#whenFull = options.whenFull
    this.#basePriority = options.basePriority
    this.#isClosed = options.isClosed
    this.#signal = options.signal
  }

  /** Answers a promise when the caller must wait before it adds more; it rejects when what was sent before has failed. */
  add(job: PackedJob, index: number): Promise<void> | undefined {
    // Also of a slow producer, whose jobs go out by themselves: it must not produce for ever in vain.
    if (this.#failure) return Promise.reject(this.#failure.error)
    this.#put(job, index)
    this.#jobs += 1
    this.#bytes += job.record.length
    const isEnough = this.#jobs >= MAX_JOBS && (this.#lines.length <= FEW_LINES || this.#jobs >= GATHERED_JOBS)
    if (isEnough || this.#bytes >= GATHERED_BYTES) return this.#flushBehind()
    this.#linger ??= setTimeout(() => this.#flush(), LINGER_MS)
    return undefined
  }

  /**
   * Everything an iterable has, read no faster than it is stored.
   * @param skip - So many of its first jobs were sent before.
   */
  async all(jobs: Iterable<JobInput> | AsyncIterable<JobInput>, packer: Packer, skip = 0): Promise<SubmitSummary> {
    let index = 0
    const take = (job: JobInput) => {
      const at = index++
      return at < skip ? undefined : this.add(packer.pack(job, at, this.#clock.date()), at)
    }
    try {
      if (Symbol.iterator in Object(jobs)) {
        for (const job of jobs as Iterable<JobInput>) {
          const pause = take(job)
          if (pause) await pause
        }
      } else if (Symbol.asyncIterator in Object(jobs)) {
        for await (const job of jobs as AsyncIterable<JobInput>) {
          const pause = take(job)
          if (pause) await pause
        }
      } else {
        throw new InvalidOptionsError('submit', [{ path: 'jobs', problem: 'must be an iterable or async iterable' }])
      }
    } catch (error) {
      await this.abandon()
      throw error
    }
    return this.finish()
  }

  /** A single job, at once. Answers its sequence, '0' if its id was known. */
  async one(job: PackedJob): Promise<string> {
    const line = this.#put(job, undefined)
    return (await this.#sendChunk([line])) ?? '0'
  }

  /** Sends what is left and answers when all of it is stored. */
  async finish(): Promise<SubmitSummary> {
    this.#flush()
    await this.#sending
    if (this.#failure) throw this.#failure.error
    return { accepted: this.#accepted, duplicates: this.#duplicates }
  }

  /** The producer failed: nothing more is sent. */
  async abandon(): Promise<void> {
    clearTimeout(this.#linger)
    this.#lines = []
    this.#jobs = 0
    await this.#sending
  }

  #put(job: PackedJob, index: number | undefined): Line {
    const line = this.#lineOf(job)
    if (job.kind === 'later') line.entries.push(job.instant)
    if (job.kind !== 'fresh') line.entries.push(job.digest)
    line.entries.push(job.record)
    line.indexes.push(index)
    if (job.hasCost) line.hasCosts = true
    return line
  }

  #lineOf(job: PackedJob): Line {
    const { tenant, level, lane, kind } = job
    let line = this.#lastLine
    if (line?.tenant !== tenant) line = this.#lineOfTenant.get(tenant)
    if (line === undefined || line.kind !== kind || line.lane !== lane || line.level !== level) {
      line = this.#lineOfItsLane(job)
      this.#lineOfTenant.set(tenant, line)
    }
    this.#lastLine = line
    return line
  }

  #lineOfItsLane({ tenant, level, lane, kind }: PackedJob): Line {
    const key = `${level}:${lane}:${tenant}`
    let line = this.#lineOfLane.get(key)
    if (line?.kind !== kind) {
      line = { tenant, level, lane, kind, basePriority: this.#basePriority, entries: [], indexes: [], hasCosts: false }
      this.#lines.push(line)
      this.#lineOfLane.set(key, line)
    }
    return line
  }

  /** Sends what is gathered, and waits for what was sent before it: two windows in memory, no more. */
  async #flushBehind(): Promise<void> {
    const before = this.#sending
    this.#flush()
    await before
    if (this.#failure) throw this.#failure.error
  }

  #flush(): void {
    clearTimeout(this.#linger)
    this.#linger = undefined
    if (this.#jobs === 0) return
    const lines = this.#lines
    this.#lines = []
    this.#lineOfLane = new Map()
    this.#lineOfTenant = new Map()
    this.#lastLine = undefined
    this.#jobs = 0
    this.#bytes = 0
    this.#sending = this.#sending.then(() => this.#send(lines))
  }

  /** Never rejects: the failure is kept for the caller, who asks when it adds or finishes. */
  async #send(lines: readonly Line[]): Promise<void> {
    try {
      for (const chunk of chunks(lines)) {
        if (this.#failure) return
        await this.#sendChunk(chunk)
      }
    } catch (error) {
      this.#failure ??= { error }
    }
  }

  /**
   * Sends a chunk until all of it is stored: what does not fit waits for room, if the caller chose so. Answers the first
   * sequence of what was sent last.
   */
  async #sendChunk(chunk: readonly Line[]): Promise<string | undefined> {
    let rest = chunk
    for (let waitMs = FULL_WAIT_MS.first; rest.length > 0; waitMs = Math.min(2 * waitMs, FULL_WAIT_MS.longest)) {
      if (this.#isClosed()) throw new ClosedError(`The queue "${this.#queue}"`)
      this.#signal?.throwIfAborted()
      const reply = await submitJobs(this.#requests, rest, { signal: this.#signal })
      if (reply.costly) throw costlyError(rest, reply.costly)
      const [closed] = reply.closed
      if (closed !== undefined) throw this.#closedError(rest[closed] as Line)
      this.#accepted += reply.accepted
      this.#duplicates += reply.duplicates
      rest = reply.full.map(({ line, dealtWith }) => leftOf(rest[line] as Line, dealtWith))
      if (rest.length === 0) return reply.firsts[0]
      if (this.#whenFull === 'error') throw await this.#fullError(rest[0] as Line)
      await pauseFor(systemClock, waitMs, this.#signal)
    }
    return undefined
  }

  /**
   * The bounds may be another process's. With two of them, the queue's counts say which one it was; they are read a moment
   * later, when jobs may have left.
   */
  async #fullError(line: Line): Promise<QueueFullError> {
    const { max_pending: queue, max_pending_tenant: tenant } = await this.#bounds()
    if (tenant === 0 || (queue > 0 && (await this.#isQueueFull(queue)))) {
      return new QueueFullError({ queue: this.#queue, maxPending: queue })
    }
    return new QueueFullError({ queue: this.#queue, tenant: fromToken(line.tenant), maxPending: tenant })
  }

  #closedError({ tenant, lane }: Line): ActionClosedError {
    return new ActionClosedError({ action: `${this.#queue}:${tenant}:${actionOfLane(lane)}` })
  }

  async #bounds(): Promise<SettingValues> {
    return (await repeatWhileUnavailable(() => readSettings(this.#requests))).values
  }

  async #isQueueFull(maxPending: number): Promise<boolean> {
    const { waiting, delayed } = await repeatWhileUnavailable(() => readCounts(this.#requests))
    return waiting + delayed >= maxPending
  }
}

function costlyError(lines: readonly Line[], { line: at, job, limit, most }: CostlyJob): InvalidJobError {
  const { kind, entries, indexes } = lines[at] as Line
  const { cost, givenId } = decodeRecord(entries[(job + 1) * entriesPerJob[kind] - 1] as string)
  const problem = `its cost of ${cost} is more than the limit "${limit}" could ever grant (${most})`
  return new InvalidJobError({ index: indexes[job], jobId: givenId, problem })
}

/** Some jobs of a line, from one on and before another. */
function jobsOf(line: Line, from: number, to: number): Line {
  const width = entriesPerJob[line.kind]
  return { ...line, entries: line.entries.slice(from * width, to * width), indexes: line.indexes.slice(from, to) }
}

function leftOf(line: Line, dealtWith: number): Line {
  return jobsOf(line, dealtWith, line.indexes.length)
}

/** Splits lines into chunks that one script can carry; a long line is split, its order kept. */
function* chunks(lines: readonly Line[]): Generator<Line[]> {
  let chunk: Line[] = []
  let jobs = 0
  let cost = 0
  let bytes = 0
  for (const line of lines) {
    const width = entriesPerJob[line.kind]
    let from = 0
    while (from < line.entries.length) {
      cost += COST_OF_LINE
      let to = from
      while (to < line.entries.length && (jobs === 0 || (jobs < MAX_JOBS && cost < MAX_COST && bytes < MAX_BYTES))) {
        bytes += (line.entries[to + width - 1] as string).length
        jobs += 1
        cost += COST[line.kind]
        to += width
      }
      if (to > from) chunk.push(to - from === line.entries.length ? line : jobsOf(line, from / width, to / width))
      from = to
      if (jobs >= MAX_JOBS || cost >= MAX_COST || bytes >= MAX_BYTES) {
        yield chunk
        chunk = []
        jobs = cost = bytes = 0
      }
    }
  }
  if (chunk.length > 0) yield chunk
}
