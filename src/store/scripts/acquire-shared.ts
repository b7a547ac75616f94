import type { GroupKeys } from '../keys.ts'
import type { Requests } from '../requests.ts'
import { acquireShared as script } from '../scripts.generated.ts'
import { type AcquireReply, type AcquireRequest, acquire } from './acquire-permits.ts'

/** Limits shared by the queues of a group. */
export function acquireShared(requests: Requests<GroupKeys>, request: AcquireRequest): Promise<AcquireReply> {
  return acquire(requests, request, (args, options) => requests.run(script, args, options))
}
