import type { Level } from '../../../src/store/names.ts'
import type { AdmitReply } from '../../../src/store/scripts/admit-job.ts'
import { chargeAgain, freshMs, limitsOver, noticeServer, openLimits, shortestKept } from './limits.ts'
import { isHeld, type OpenLimit, reasonOf } from './open-limit.ts'
import type { Lease, QueueState } from './queue-state.ts'

export function renewLeases(
  queue: QueueState,
  client: string,
  fences: readonly string[],
  leaseMs: number,
  now: number,
): string[] {
  const lost = fences.filter((fence) => queue.lease(fence)?.client !== client)
  for (const lease of queue.leases) {
    if (lease.client === client && fences.includes(lease.fence)) lease.until = now + leaseMs * 1000
  }
  queue.leases.sort(byInstant)
  return lost
}

export function admitJob(queue: QueueState, fence: string, jobKey: string, standing: Level, now: number): AdmitReply {
  queue.begin(now)
  const job = queue.lease(fence)?.jobs.find(({ key }) => key === jobKey)
  if (!job) return { word: 'stale' }
  noticeServer(queue)
  openLimits(queue)
  const tenant = queue.tenant(job.tenant)
  const opens = ({ meter, rule }: OpenLimit): number => meter.furtherInstant(job.cost, job.members.get(rule.name))
  const closed = limitsOver(queue, tenant, standing).filter((limit) => !isHeld(limit) && opens(limit) > now)
  if (closed.length > 0) {
    const latest = Math.max(...closed.map(opens))
    const last = closed.find((limit) => opens(limit) === latest)
    if (last) queue.count(`denied:${last.countedAs}/${reasonOf(last, now)}`)
    return { word: 'wait', waitMs: (latest - now) / 1000 }
  }
  chargeAgain(queue, tenant, standing, job, queue.nextFence())
  return { word: 'admitted', freshMs: freshMs(shortestKept(queue, tenant, standing)) }
}

/** As the set of leases has them. */
export function byInstant(a: Lease, b: Lease): number {
  return a.until - b.until || (`${a.fence}:${a.client}` < `${b.fence}:${b.client}` ? -1 : 1)
}
