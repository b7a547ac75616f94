import type { Requests } from '../requests.ts'
import { runDelayedJob as script } from '../scripts.generated.ts'
import { searchLeases } from '../search-leases.ts'
import type { JobAddress, JobState } from './read-job.ts'

/** `due`: the next claim puts it in line. Any other state: it is not delayed, and nothing was changed. */
export type RunNowReply = 'due' | Exclude<JobState, 'delayed'> | 'unknown'

export async function runDelayedJob(requests: Requests, address: JobAddress, nowUs = ''): Promise<RunNowReply> {
  const { jobKey: jobGiven, tenant: tenantGiven, action: actionGiven, digest } = address
  const args = { nowGiven: nowUs, jobGiven, tenantGiven, actionGiven, digest }
  const [word] = await searchLeases((leasesFrom) => requests.run(script, () => ({ ...args, leasesFrom })))
  return word as RunNowReply
}
