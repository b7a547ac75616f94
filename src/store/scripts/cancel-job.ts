import type { Requests } from '../requests.ts'
import { cancelJob as script } from '../scripts.generated.ts'
import type { JobAddress } from './read-job.ts'

/**
 * `canceling`: it runs, and its worker has been told. `ended`: it had succeeded or failed before.
 * `unknown`: there is no such job, or not any more.
 */
export type CancelReply = 'canceled' | 'canceling' | 'ended' | 'unknown'

export async function cancelJob(requests: Requests, address: JobAddress, nowUs = ''): Promise<CancelReply> {
  const [word] = await requests.run('cancel-job', script, (request) => ({
    nowGiven: nowUs,
    request,
    jobGiven: address.jobKey,
    tenantGiven: address.tenant,
    actionGiven: address.action,
    digest: address.digest,
  }))
  return word as CancelReply
}
