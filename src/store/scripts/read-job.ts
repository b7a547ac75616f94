import { parseJobKey } from '../job-place.ts'
import { idDigest, toToken } from '../names.ts'
import type { DeadReason } from '../reasons.ts'
import { type JobRecord, readRecord } from '../record.ts'
import type { Requests } from '../requests.ts'
import { readJob as script } from '../scripts.generated.ts'
import { searchLeases } from '../search-leases.ts'

/** How a job is found: by its key, or by its tenant, its action if it has one, and the digest of the id given to it. */
export interface JobAddress {
  readonly jobKey: string
  readonly tenant: string
  readonly action: string
  readonly digest: string
}

/** A generated id names its place by itself; a given one is known within its action, or else within its tenant. */
export function addressOf(id: string, tenant: string, action?: string): JobAddress {
  if (parseJobKey(id)) return { jobKey: id, tenant: '', action: '', digest: '' }
  const token = action === undefined ? '' : toToken(action)
  return { jobKey: '', tenant: toToken(tenant), action: token, digest: idDigest(tenant, id) }
}

export type JobState = 'waiting' | 'delayed' | 'running' | 'succeeded' | 'failed' | 'canceled'

export interface FoundJob {
  readonly jobKey: string
  readonly state: JobState
  /** When a delayed job is due, in ms since 1970. */
  readonly dueMs: number | undefined
  /** Why it died; '' while it lives. */
  readonly reason: DeadReason | ''
  /** Undefined once it has ended and nothing of it is kept. */
  readonly record: JobRecord | undefined
}

export async function readJob(requests: Requests, address: JobAddress, nowUs = ''): Promise<FoundJob | undefined> {
  const { jobKey: jobGiven, tenant: tenantGiven, action: actionGiven, digest } = address
  const args = { nowGiven: nowUs, jobGiven, tenantGiven, actionGiven, digest }
  const reply = await searchLeases((leasesFrom) => requests.run(script, () => ({ ...args, leasesFrom })))
  if (reply[0] === 'unknown') return undefined
  const [, jobKey, state, due, reason, text] = reply as ['found', string, JobState, string, FoundJob['reason'], string]
  return {
    jobKey,
    state,
    dueMs: due === '' ? undefined : Number(due) / 1000,
    reason,
    record: text === '' ? undefined : readRecord(text),
  }
}
