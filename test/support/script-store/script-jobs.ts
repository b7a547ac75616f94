import { decodeJobs } from '../../../src/engine/job.ts'
import { placeOfKey } from '../../../src/store/job-place.ts'
import type { Level } from '../../../src/store/names.ts'
import { encodeRecord } from '../../../src/store/record.ts'
import type { ClaimReply, ClaimRequest, Finish, FinishedInAction } from '../../../src/store/scripts/finish-and-claim.ts'

/** A fresh record with this payload. */
export function record(payload: unknown): string {
  return encodeRecord('rs', 'SEND', '', '', JSON.stringify(payload))
}

/** How a claim's jobs are told to be finished, all alike. */
export function finishedAs(claim: ClaimReply, finish: Finish, action?: FinishedInAction): ClaimRequest['finished'] {
  return jobsOf(claim).map(({ jobKey, standing }) => {
    return { fence: claim.fence, jobKey, place: placeOfKey(jobKey), standing, finish, ...(action && { action }) }
  })
}

export function jobsOf(claim: ClaimReply): { jobKey: string; standing: Level; record: string }[] {
  return decodeJobs(claim.fence, claim.jobs, []).map(({ key, standing }, at) => {
    const text = claim.jobs[2 * at + 1] as string
    return { jobKey: key, standing, record: text.slice(text.startsWith('^') ? text.indexOf('\n') + 1 : 0) }
  })
}

/** What a claim got, in short: `a1 b1 a2`, by tenant and payload. */
export function shortly(claim: ClaimReply): string {
  return jobsOf(claim)
    .map(({ jobKey, record: text }) => jobKey.split(':').at(-1) + (text.split('\n').at(-1) ?? ''))
    .join(' ')
}
