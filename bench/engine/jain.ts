import type { BenchContext, Figures, Measure } from '../measure.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { Effects, jobNumber, seededDurations, sleep, tenantAfterTenant } from '../workload.ts'

const TENANTS = 50
const CONCURRENCY = 50
const DURATION_MS = { from: 5, to: 100 }
const WINDOW_MS = 10_000
const WINDOW_STEP_MS = 100
/** More than any tenant can get done, so that all stay backlogged to the end. */
const JOBS_PER_TENANT = { quick: 600, full: 3_000 }

/** Jain's index of the jobs that equal, backlogged tenants got done, in the worst window of ten seconds. */
export const jain: Measure = {
  name: 'jain',
  title: 'Jain index over 50 tenants',
  kind: 'counting',

  async run({ redis, quick }: BenchContext): Promise<Figures> {
    const seconds = quick ? 11 : 60
    const perTenant = quick ? JOBS_PER_TENANT.quick : JOBS_PER_TENANT.full
    const side = sluiceSide(redis.path)
    const effects = new Effects(TENANTS * perTenant)
    const done: { tenant: number; at: number }[] = []
    const durationMs = seededDurations(TENANTS, DURATION_MS)

    // Tenant after tenant: first in, first out would serve one at a time.
    await side.submit(tenantAfterTenant('tenant', TENANTS, perTenant))
    const worker = await side.work({ concurrency: CONCURRENCY }, async (payload) => {
      await sleep(durationMs())
      effects.record(payload)
      done.push({ tenant: Math.floor(jobNumber(payload) / perTenant), at: performance.now() })
    })
    await sleep(seconds * 1_000)
    await worker.close()
    await side.close()
    effects.assertNeverTwice('jain')

    return { jain: worstJain(done), jainJobs: done.length, jainJobsPerSecond: done.length / seconds }
  },
}

function worstJain(done: readonly { tenant: number; at: number }[]): number {
  const first = done[0]?.at ?? 0
  const last = done.at(-1)?.at ?? 0
  let worst = 1
  for (let from = first; from + WINDOW_MS <= last; from += WINDOW_STEP_MS) {
    const counts = new Array<number>(TENANTS).fill(0)
    for (const { tenant, at } of done)
      if (at >= from && at < from + WINDOW_MS) counts[tenant] = (counts[tenant] ?? 0) + 1
    worst = Math.min(worst, jainIndex(counts))
  }
  return worst
}

/** 1 when all got the same, 1/n when one got all. */
function jainIndex(shares: readonly number[]): number {
  const sum = shares.reduce((total, share) => total + share, 0)
  const squares = shares.reduce((total, share) => total + share * share, 0)
  return (sum * sum) / (shares.length * squares)
}
