import type { Redis } from 'ioredis'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros } from '../redis-meter.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { Effects, tenantAfterTenant } from '../workload.ts'

const FEW_TENANTS = 10
const MANY_TENANTS = 100_000
const CONCURRENCY = 50
/** Asked by every claim and never in the way: what is measured is finding the next tenant among many. */
const GENEROUS = '100000/s'

/**
 * What a claimed job costs Redis when there are 100,000 tenants with work, over what it costs with ten. The quick bench
 * has all the tenants, with 5 jobs each instead of 50: none is emptied by the turns that are measured.
 */
export const claimCost: Measure = {
  name: 'claim-cost',
  title: 'claim cost at 100,000 tenants',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const claimed = quick ? 30_000 : 200_000
    const perTenant = quick ? 5 : 50

    const few = await claimMicros(redis.path, meter, {
      tenants: FEW_TENANTS,
      perTenant: (claimed * 1.2) / FEW_TENANTS,
      claimed,
    })
    const many = await claimMicros(redis.path, meter, {
      tenants: MANY_TENANTS,
      perTenant,
      claimed,
    })
    return {
      claimMicros10Tenants: few,
      claimMicros100kTenants: many,
      claimCost100kOver10Tenants: many / few,
      claimCostJobsPerTenant: perTenant,
    }
  },
}

/** Redis µs a job from its claim to its end, over `claimed` of the jobs that wait. */
async function claimMicros(
  path: string,
  meter: Redis,
  { tenants, perTenant, claimed }: { tenants: number; perTenant: number; claimed: number },
): Promise<number> {
  const side = sluiceSide(path, { limits: { tenant: GENEROUS } })
  try {
    await side.submit(tenantAfterTenant(tenants, perTenant))
    const effects = new Effects(tenants * perTenant)
    let reached: () => void = () => {}
    const enough = new Promise<void>((resolve) => {
      reached = resolve
    })
    const before = await redisCpuMicros(meter)
    const worker = await side.work({ concurrency: CONCURRENCY }, (payload) => {
      effects.record(payload)
      if (effects.count === claimed) reached()
    })
    await enough
    await worker.close()
    const cpu = (await redisCpuMicros(meter)) - before
    effects.assertNeverTwice('claim cost')
    return cpu / effects.count
  } finally {
    await side.close()
    await emptyRedis(meter)
  }
}
