import type { Level } from '../../../src/store/names.ts'
import type { AdmitReply } from '../../../src/store/scripts/admit-job.ts'
import { chargeAgain, freshMs, limitsOver, narrowestJitter, noticeServer, openLimits } from './limits.ts'
import { isHeld, type OpenLimit, reasonOf } from './open-limit.ts'
import type { Lease, QueueState } from './queue-state.ts'
import { OpenQuota } from './quota.ts'

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
  const closed = limitsOver(queue, tenant, standing).filter(
    (limit) => !isHeld(limit) && limit.meter.available() === 0 && knows(limit),
  )
  if (closed.length > 0) {
    const opens = ({ meter }: OpenLimit): number => Math.max(now + 1, meter.instant(1))
    const latest = Math.max(...closed.map(opens))
    const last = closed.find((limit) => opens(limit) === latest)
    if (last) queue.count(`denied:${last.countedAs}/${reasonOf(last, now)}`)
    return { word: 'wait', waitMs: (latest - now) / 1000 }
  }
  chargeAgain(queue, tenant, standing, queue.nextFence())
  return { word: 'admitted', freshMs: freshMs(narrowestJitter(queue, tenant, standing)) }
}

/** Where nothing is known, a job that runs is the one that asks. */
function knows({ meter }: OpenLimit): boolean {
  return !(meter instanceof OpenQuota) || meter.knows
}

/** As the set of leases has them. */
export function byInstant(a: Lease, b: Lease): number {
  return a.until - b.until || (`${a.fence}:${a.client}` < `${b.fence}:${b.client}` ? -1 : 1)
}
