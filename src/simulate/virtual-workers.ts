import type { EventQueue, Happening } from './event-queue.ts'
import { NEVER } from './scheduler/instants.ts'
import type { Claimed, Ended, VirtualQueue } from './scheduler/virtual-queue.ts'
import type { VirtualJob } from './scheduler/virtual-tenant.ts'

// As the worker pool of the engine has them (src/engine/worker-pool.ts): what ends within a short while is told together.
const GATHER_SHARE = 0.15
const LONGEST_GATHER_US = 15_000
const SHORTEST_GATHER_US = 1_000
const MOST_WANTED = 1_000
const MOST_TOLD = 1_000

/** How long a job runs, and what becomes of it. */
export interface Run {
  readonly durationUs: number
  readonly outcome: 'succeeded' | 'failed' | 'retried'
  readonly retryAfterUs?: number
}

export interface WorkerParts {
  readonly queue: VirtualQueue
  readonly events: EventQueue
  /** Virtual time. */
  readonly now: () => number
  readonly start: (job: VirtualJob) => Run
  readonly end: (job: VirtualJob, run: Run) => void
}

/**
 * The processes that serve the queue, with their hands. They claim, run and tell as the pool of the engine does; a round trip
 * takes no time. Who is woken: whoever fell idle last, and the next one when that one's hands are full.
 */
export class VirtualWorkers {
  readonly #parts: WorkerParts
  /** Who waits to be woken; the last first. */
  readonly #idle: Process[] = []
  /** When one of them looks again. */
  #alarmAt: number | undefined
  #isWaking = false
  readonly #wakeUp: Happening = {
    happen: () => {
      this.#isWaking = false
      this.#idle.at(-1)?.exchange()
    },
  }

  constructor(parts: WorkerParts, { processes, concurrency }: { processes: number; concurrency: number }) {
    this.#parts = parts
    for (let count = 0; count < processes; count++) this.#idle.push(new Process(this, parts, concurrency))
  }

  /**
   * There is work where there was none. Whoever is woken claims when everything of this instant has come: floods of the same
   * time are shared out between their tenants, as by a worker that a real Redis wakes a little later.
   */
  wake(): void {
    if (this.#isWaking || this.#idle.length === 0) return
    this.#isWaking = true
    this.#parts.events.plan(this.#parts.now(), this.#wakeUp)
  }

  /** One has claimed. */
  claimed(process: Process, { leaves, isShort }: { leaves: Claimed['leaves']; isShort: boolean }): void {
    const place = this.#idle.indexOf(process)
    if (place >= 0) this.#idle.splice(place, 1)
    if (isShort) this.#idle.push(process)
    // Its hands are full: somebody else takes what is left.
    if (leaves === 'now') this.wake()
    else this.#setAlarm(leaves)
  }

  #setAlarm(at: number): void {
    if (at >= NEVER || (this.#alarmAt !== undefined && this.#alarmAt <= at)) return
    this.#alarmAt = at
    this.#parts.events.plan(at, {
      happen: () => {
        // A sooner one has come in between.
        if (this.#alarmAt !== at) return
        this.#alarmAt = undefined
        this.wake()
      },
    })
  }
}

class Process {
  readonly #workers: VirtualWorkers
  readonly #parts: WorkerParts
  readonly #concurrency: number
  #busy = 0
  #ended: Ended[] = []
  #meanRunUs = 0
  #isToFlush = false
  readonly #flush: Happening = {
    happen: () => {
      this.#isToFlush = false
      if (this.#ended.length > 0) this.exchange()
    },
  }

  constructor(workers: VirtualWorkers, parts: WorkerParts, concurrency: number) {
    this.#workers = workers
    this.#parts = parts
    this.#concurrency = concurrency
  }

  /** What has ended, and the next claim. */
  exchange(): void {
    for (;;) {
      const wanted = Math.min(MOST_WANTED, this.#concurrency - this.#busy)
      const told = this.#ended.length <= MOST_TOLD ? this.#ended : this.#ended.slice(0, MOST_TOLD)
      this.#ended = this.#ended.slice(told.length)
      const reply = this.#parts.queue.claim(wanted, told, this.#parts.now())
      for (const job of reply.jobs) this.#run(job)
      if (!this.#goesOn(reply, wanted)) {
        this.#workers.claimed(this, { leaves: reply.leaves, isShort: reply.jobs.length < wanted })
        return
      }
    }
  }

  /** More may be claimable at once, or a claim takes no more than it does. */
  #goesOn({ word, wait, jobs }: Claimed, wanted: number): boolean {
    if (word === 'again' || wait === 0 || this.#ended.length > 0) return true
    return jobs.length === wanted && this.#concurrency > this.#busy
  }

  #run(job: VirtualJob): void {
    const run = this.#parts.start(job)
    this.#busy += 1
    this.#parts.events.plan(this.#parts.now() + run.durationUs, new RunEnd(this, job, run))
  }

  ended(job: VirtualJob, run: Run): void {
    this.#busy -= 1
    this.#meanRunUs += (run.durationUs - this.#meanRunUs) / 16
    this.#parts.end(job, run)
    this.#ended.push({ job, retryAfter: run.retryAfterUs })
    if (this.#ended.length >= Math.min(this.#concurrency, MOST_TOLD)) this.exchange()
    else if (!this.#isToFlush) {
      this.#isToFlush = true
      const gather = Math.round(Math.min(LONGEST_GATHER_US, this.#meanRunUs * GATHER_SHARE))
      this.#parts.events.plan(this.#parts.now() + (gather < SHORTEST_GATHER_US ? 0 : gather), this.#flush)
    }
  }
}

/** Made for every job: a class costs less than a function of its own. */
class RunEnd implements Happening {
  readonly #process: Process
  readonly #job: VirtualJob
  readonly #run: Run

  constructor(process: Process, job: VirtualJob, run: Run) {
    this.#process = process
    this.#job = job
    this.#run = run
  }

  happen(): void {
    this.#process.ended(this.#job, this.#run)
  }
}
