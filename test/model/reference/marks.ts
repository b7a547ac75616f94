import type { QueueState } from './queue-state.ts'
import type { Job } from './tenant.ts'

/** A cancelled job is gone from where it stood; for a while it is known that it was cancelled. */
export function keepMark(queue: QueueState, job: Job): void {
  job.at = queue.now + queue.values.keep_ids
  queue.script.marksAdded += 1
}
