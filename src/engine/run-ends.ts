import type { Finish, FinishedJob } from '../store/scripts/finish-and-claim.ts'
import type { LeasedJob } from './job.ts'
import type { RunResult } from './outcome.ts'

/** A run that has ended. */
export interface RunEnd {
  readonly job: LeasedJob
  /** What its handler made of it. */
  readonly result: RunResult
  /** What the store was told. */
  readonly finish: Finish
}

/** Tells whoever listens in this process which runs have ended, once the store knows. Costs nothing while nobody does. */
export class RunEnds {
  readonly #listeners = new Set<(end: RunEnd) => void>()
  readonly #untold = new WeakMap<FinishedJob, RunEnd>()

  /** Returns what ends it. */
  listen(listener: (end: RunEnd) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** It goes to the store with this. */
  note(finished: FinishedJob, job: LeasedJob, result: RunResult): void {
    if (this.#listeners.size > 0) this.#untold.set(finished, { job, result, finish: finished.finish })
  }

  /** @param stale - Places of those that were no longer the caller's to end. */
  stored(finished: readonly FinishedJob[], stale: readonly number[]): void {
    if (this.#listeners.size === 0) return
    finished.forEach((each, place) => {
      const end = stale.includes(place) ? undefined : this.#untold.get(each)
      if (end) for (const listener of this.#listeners) listener(end)
    })
  }
}
