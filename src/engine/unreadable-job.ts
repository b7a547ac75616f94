import { encodeError } from '../store/record.ts'
import type { Finish } from '../store/scripts/finish-and-claim.ts'
import type { LeasedJob } from './job.ts'
import type { Log } from './log.ts'

/** A job whose record is damaged: it cannot run here or anywhere, and must not come again to whoever claims next. */
export function buryUnreadable(job: LeasedJob, queue: string, log: Log): Finish {
  log({
    level: 'error',
    event: 'job.unreadable',
    message: `The record of job "${job.key}" of queue "${queue}" cannot be read; it is a dead letter.`,
    job: job.key,
    error: job.damage,
  })
  return { outcome: 'dead', reason: 'unreadable', error: encodeError(job.damage) }
}
