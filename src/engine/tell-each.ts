import type { FinishedJob } from '../store/scripts/finish-and-claim.ts'
import { isStoreAway } from './is-store-away.ts'

interface Telling {
  /** Tells the store of these together. None at all is an easy question: whether it can be told anything. */
  tell(finished: readonly FinishedJob[]): Promise<void>
  onUntellable(job: FinishedJob, error: unknown): void
}

/**
 * Tells the store of jobs one by one that it would not take together: one of them is what it cannot do, and the others are
 * not to wait for it. That one is left to its lease, and in the end to `maxStalls`. Answers those of which nothing is known,
 * because the store is away or takes nothing at all.
 */
export async function tellEach(
  finished: readonly FinishedJob[],
  { tell, onUntellable }: Telling,
): Promise<readonly FinishedJob[]> {
  for (const [at, job] of finished.entries()) {
    try {
      await tell([job])
    } catch (error) {
      if (isStoreAway(error) || !(await isTold(tell([])))) return finished.slice(at)
      onUntellable(job, error)
    }
  }
  return []
}

function isTold(telling: Promise<void>): Promise<boolean> {
  return telling.then(
    () => true,
    () => false,
  )
}
