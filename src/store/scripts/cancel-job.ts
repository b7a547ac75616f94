import type { Requests } from '../requests.ts'
import { cancelJob as script } from '../scripts.generated.ts'
import { searchLeases } from '../search-leases.ts'
import type { JobAddress } from './read-job.ts'

/**
 * `canceling`: it runs, and its worker has been told. `ended`: it had succeeded or failed before.
 * `unknown`: there is no such job, or not any more.
 */
export type CancelReply = 'canceled' | 'canceling' | 'ended' | 'unknown'

export async function cancelJob(requests: Requests, address: JobAddress, nowUs = ''): Promise<CancelReply> {
  const { jobKey: jobGiven, tenant: tenantGiven, action: actionGiven, digest } = address
  const args = { nowGiven: nowUs, jobGiven, tenantGiven, actionGiven, digest }
  const [word] = await searchLeases((leasesFrom) =>
    requests.run(script, (request) => ({ ...args, request, leasesFrom })),
  )
  return word as CancelReply
}
