import { parseJobKey } from '../store/job-place.ts'
import type { Level } from '../store/names.ts'
import type { DeadReason, DelayReason } from '../store/reasons.ts'
import { type JobErrorRecord, readPayload } from '../store/record.ts'
import type { Requests } from '../store/requests.ts'
import { type JobAddress, type JobState, readJob } from '../store/scripts/read-job.ts'

/** What is known of a job. Once it has ended, little of it is kept. */
export interface JobView {
  readonly id: string
  readonly tenant: string
  readonly level: Level
  readonly lane: string
  /** The name of the action it was submitted with. */
  readonly action: string | undefined
  readonly state: JobState
  /** Undefined when the job has ended and nothing of it is kept; so are the fields below. */
  readonly type: string | undefined
  readonly payload: unknown
  /** Runs that failed. */
  readonly attempts: number | undefined
  readonly createdAt: number | undefined
  readonly error: JobErrorRecord | undefined
  /** Why it waits or why it died. */
  readonly reason: DelayReason | DeadReason | undefined
  /** When a delayed job is due, in ms since 1970. */
  readonly dueAt: number | undefined
}

/** @param id - As the caller knows it. */
export async function viewJob(requests: Requests, address: JobAddress, id: string): Promise<JobView | undefined> {
  const found = await readJob(requests, address)
  const place = found && parseJobKey(found.jobKey)
  if (!found || !place) return undefined
  const { record, state } = found
  const reason = found.reason || record?.history.reason || (state === 'delayed' ? 'scheduled' : undefined)
  return {
    id: record?.givenId ?? id,
    tenant: place.tenant,
    level: place.level,
    lane: place.lane,
    action: place.action,
    state,
    type: record?.type,
    payload: record && readPayload(record.payload),
    attempts: record?.history.attempts,
    createdAt: record?.createdAt,
    error: record?.history.error,
    reason,
    dueAt: found.dueMs,
  }
}
