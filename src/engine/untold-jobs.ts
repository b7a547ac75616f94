import type { FinishedJob } from '../store/scripts/finish-and-claim.ts'

/**
 * How many jobs of each claim the store has not been told of. Where that is as many as the store still holds under the
 * claim, it need not look for each of them.
 */
export class UntoldJobs {
  readonly #counts = new Map<string, number>()

  claimed(fence: string, jobs: number): void {
    this.#counts.set(fence, jobs)
  }

  /** The counts of the claims these jobs are of, as they are until now; from now on these are told. */
  take(finished: readonly FinishedJob[]): ReadonlyMap<string, number> {
    const before = new Map<string, number>()
    for (let at = 0; at < finished.length; ) {
      const { fence } = finished[at] as FinishedJob
      // Most of them stand together.
      let end = at + 1
      while (finished[end]?.fence === fence) end++
      this.#tell(fence, end - at, before)
      at = end
    }
    return before
  }

  #tell(fence: string, jobs: number, before: Map<string, number>): void {
    const untold = this.#counts.get(fence)
    if (untold === undefined) return
    if (!before.has(fence)) before.set(fence, untold)
    if (untold > jobs) this.#counts.set(fence, untold - jobs)
    else this.#counts.delete(fence)
  }

  /** The store may or may not have heard of these: nobody knows the counts of their claims any more. */
  lose(finished: readonly FinishedJob[]): void {
    for (const { fence } of finished) this.#counts.delete(fence)
  }
}
