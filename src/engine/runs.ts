import type { JobRun } from './job-run.ts'

/**
 * The runs under way, in no order. An array and not a Set: at thousands of runs a second the tables that a Set has
 * outgrown hang on each other, and with them every run that was in them, until the next full collection. That was a third
 * of this process's work for a no-op job. For the same reason nothing here may point to runs that have ended.
 */
export class Runs implements Iterable<JobRun> {
  #runs: JobRun[] = []

  get size(): number {
    return this.#runs.length
  }

  add(run: JobRun): void {
    run.place = this.#runs.length
    this.#runs.push(run)
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
    return runs
  }

  [Symbol.iterator](): Iterator<JobRun> {
    return this.#runs[Symbol.iterator]()
  }
}
