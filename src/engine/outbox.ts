import type { FinishedJob } from '../store/scripts/finish-and-claim.ts'

// Told in one call: its script must not take long, and Lua hands over no more than 8,000 values at once. A job that did not
// succeed takes it about 50 µs.
const MOST_TOLD = 1_000
const COST_UNLESS_SUCCEEDED = 10
const MOST_TOLD_BYTES = 1_000_000

/** Jobs that have ended, and of which the store has not been told yet. */
export class Outbox {
  #jobs: FinishedJob[] = []

  get size(): number {
    return this.#jobs.length
  }

  add(job: FinishedJob): void {
    this.#jobs.push(job)
  }

  /** There is as much as one call may carry, or as these hands can hold. */
  isFull(hands: number): boolean {
    return this.#jobs.length >= Math.min(hands, MOST_TOLD)
  }

  /** As much as one call may carry, the first job at least; the rest goes with the next. */
  take(): FinishedJob[] {
    const all = this.#jobs
    let count = 0
    for (let cost = 0, bytes = 0; count < all.length && cost < MOST_TOLD && bytes < MOST_TOLD_BYTES; count++) {
      const { finish, action } = all[count] as FinishedJob
      cost += finish.outcome === 'succeeded' ? 1 : COST_UNLESS_SUCCEEDED
      bytes += action?.result.length ?? 0
    }
    this.#jobs = all.slice(count)
    return count === all.length ? all : all.slice(0, count)
  }

  /** These were taken, and are to be told again: before all others. */
  putBack(jobs: readonly FinishedJob[]): void {
    this.#jobs = jobs.concat(this.#jobs)
  }
}
