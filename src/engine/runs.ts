import type { Clock } from '../clock.ts'
import type { JobRun } from './job-run.ts'

/**
 * The runs under way, in no order; those that take too long are told so.
 *
 * An array and not a Set: at thousands of runs a second the tables that a Set has outgrown hang on each other, and with
 * them every run that was in them, until the next full collection. That was a third of this process's work for a no-op
 * job. For the same reason nothing here may point to runs that have ended.
 */
export class Runs implements Iterable<JobRun> {
  readonly #clock: Clock
  #runs: JobRun[] = []
  /** When `#cancelTimer`'s timer rings: not after the first deadline. */
  #ringsAt = Infinity
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#runs.length
  }

  add(run: JobRun): void {
    run.place = this.#runs.length
    this.#runs.push(run)
    const deadline = run.startedAt + run.timeoutMs
    if (deadline < this.#ringsAt) this.#ringAt(deadline)
  }

  /** The last one takes its place. */
  delete(run: JobRun): void {
    if (this.#runs[run.place] !== run) return
    const last = this.#runs.pop() as JobRun
    if (last === run) return
    last.place = run.place
    this.#runs[run.place] = last
  }

  /** All of them; there are none from now on. */
  takeAll(): readonly JobRun[] {
    const runs = this.#runs
    this.#runs = []
    this.#ringAt(Infinity)
    return runs
  }

  [Symbol.iterator](): Iterator<JobRun> {
    return this.#runs[Symbol.iterator]()
  }

  /** One timer for all: most runs end long before their deadline, and a timer each would be as much work as the run. */
  #ringAt(instant: number): void {
    this.#cancelTimer?.()
    this.#ringsAt = instant
    this.#cancelTimer =
      instant === Infinity ? undefined : this.#clock.setTimer(() => this.#timeOut(), instant - this.#clock.now())
  }

  #timeOut(): void {
    const now = this.#clock.now()
    const overdue: JobRun[] = []
    let next = Infinity
    for (const run of this.#runs) {
      const deadline = run.startedAt + run.timeoutMs
      if (deadline <= now) overdue.push(run)
      else next = Math.min(next, deadline)
    }
    this.#ringAt(next)
    for (const run of overdue) run.timeOut()
  }
}
