import type { Redis } from 'ioredis'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros } from '../redis-meter.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { Effects, sleep, tenantAfterTenant } from '../workload.ts'

const FEW_TENANTS = 10
const MANY_TENANTS = 100_000
/** Those that come when all others are parked, which are then more than nine in ten. */
const LATE_TENANTS = 10_000
const CONCURRENCY = 50
/** Parking is no part of the figure, and goes faster with more hands. */
const PARKING_CONCURRENCY = 200
/** Asked by every claim and never in the way: what is measured is finding the next tenant among many. */
const GENEROUS = '100000/s'
/** One job, then parked for half an hour. */
const MISERLY = '2/h'
const CHANGES_AT_ONCE = 100
const PARKED_ASKED_MS = 100

/**
 * What a claimed job costs Redis when there are 100,000 tenants with work, over what it costs with ten; and again when
 * they are parked and 10,000 others have come. The quick bench has all the tenants, with 6 jobs each instead of 50: the
 * turns that are measured empty none of them.
 */
export const claimCost: Measure = {
  name: 'claim-cost',
  title: 'claim cost at 100,000 tenants',

  async run({ redis: { path }, meter, quick }: BenchContext): Promise<Figures> {
    const claimed = quick ? 20_000 : 200_000
    const perTenant = quick ? 6 : 50
    const perFew = Math.ceil((claimed * 1.2) / FEW_TENANTS)

    const few = await claimMicros(path, meter, {
      claimed,
      early: { tenants: FEW_TENANTS, perTenant: perFew },
      late: { tenants: FEW_TENANTS, perTenant: perFew },
    })
    const many = await claimMicros(path, meter, {
      claimed,
      early: { tenants: MANY_TENANTS, perTenant },
      late: { tenants: LATE_TENANTS, perTenant },
    })
    return {
      claimMicros10Tenants: few.allReady,
      claimMicros100kTenants: many.allReady,
      claimCost100kOver10Tenants: many.allReady / few.allReady,
      claimMicros10TenantsOwnLimits: few.whileParked,
      claimMicros100kTenantsParked: many.whileParked,
      claimCost100kParkedOver10Tenants: many.whileParked / few.whileParked,
      claimCostJobsPerTenant: perTenant,
    }
  },
}

interface Backlog {
  tenants: number
  perTenant: number
}

/**
 * Redis µs a job from its claim to its end: of the early tenants while all of them are ready, and of the late ones
 * while the early ones are parked. The latter have a limit of their own in place of the template that parks.
 */
async function claimMicros(
  path: string,
  meter: Redis,
  { claimed, early, late }: { claimed: number; early: Backlog; late: Backlog },
): Promise<{ allReady: number; whileParked: number }> {
  const earlyJobs = early.tenants * early.perTenant
  const effects = new Effects(earlyJobs + late.tenants * late.perTenant)

  async function microsOf(side: ReturnType<typeof sluiceSide>): Promise<number> {
    const [countBefore, cpuBefore] = [effects.count, await redisCpuMicros(meter)]
    let reached: () => void = () => {}
    const enough = new Promise<void>((resolve) => {
      reached = resolve
    })
    const worker = await side.work({ concurrency: CONCURRENCY }, (payload) => {
      effects.record(payload)
      if (effects.count === countBefore + claimed) reached()
    })
    await enough
    await worker.close()
    await side.close()
    return ((await redisCpuMicros(meter)) - cpuBefore) / (effects.count - countBefore)
  }

  /** Works until the template has said no to every early tenant. */
  async function park(): Promise<void> {
    const side = sluiceSide(path, { limits: { tenant: MISERLY } })
    const worker = await side.work({ concurrency: PARKING_CONCURRENCY }, (payload) => effects.record(payload))
    // Nothing tells when the last one is parked, so it is asked for.
    while ((await side.counts()).parked < early.tenants) await sleep(PARKED_ASKED_MS)
    await worker.close()
    await side.close()
  }

  try {
    const generous = sluiceSide(path, { limits: { tenant: GENEROUS } })
    await generous.submit(tenantAfterTenant('early', early.tenants, early.perTenant))
    const allReady = await microsOf(generous)

    await park()
    const miserly = sluiceSide(path, { limits: { tenant: MISERLY } })
    await giveOwnLimits(miserly, late.tenants)
    await miserly.submit(tenantAfterTenant('late', late.tenants, late.perTenant, earlyJobs))
    const whileParked = await microsOf(miserly)

    effects.assertNeverTwice('claim cost')
    return { allReady, whileParked }
  } finally {
    await emptyRedis(meter)
  }
}

async function giveOwnLimits(side: ReturnType<typeof sluiceSide>, tenants: number): Promise<void> {
  for (let from = 0; from < tenants; from += CHANGES_AT_ONCE) {
    const count = Math.min(CHANGES_AT_ONCE, tenants - from)
    await Promise.all(
      Array.from({ length: count }, (_, at) => side.tenant(`late-${from + at}`).setLimits({ tenant: GENEROUS })),
    )
  }
}
