import type { BenchContext, Figures, Measure } from '../measure.ts'
import { originalProgressHoldSeconds } from '../original-flow.ts'
import { emptyRedis } from '../redis-meter.ts'
import { median } from '../rounds.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import type { Side } from '../sides/side.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { type BenchJob, Effects, jobNumber, sleep, tenantJobs } from '../workload.ts'

const SMALL_JOBS = 100
const CONCURRENCY = 10
const HANDLER_MS = 5
/** How long the large tenant has the workers to itself before the small ones come. */
const HEAD_START_MS = 300
/**
 * With alpha 10,000 a tenant of 100 jobs is held back for minutes in all. So that measure is scaled in time: alpha,
 * the bound of its term and the starvation guard are divided by this.
 */
const ALPHA_TIMES_FASTER = 100

/** How long tenants with 100 jobs take beside one with very many, against an ideal weighted max-min scheduler. */
export const smallTenant: Measure = {
  name: 'small-tenant',
  title: 'small tenants beside a large one',
  kind: 'counting',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const backlog = quick ? 100_000 : 1_000_000
    // First in, first out: the small tenant waits for the whole backlog, so the ratio is the size of the backlog.
    const backlogBullmq = quick ? 2_000 : 20_000
    const rounds = quick ? 2 : 5

    async function overIdeal(open: () => Side, options: { backlog: number; smallTenants: number }): Promise<number> {
      const side = open()
      try {
        return await finishOverIdeal(side, options)
      } finally {
        await side.close()
        await emptyRedis(meter)
      }
    }

    const besideOne: number[] = []
    const besideTen: number[] = []
    for (let round = 0; round < rounds; round++) {
      besideOne.push(await overIdeal(() => sluiceSide(redis.path), { backlog, smallTenants: 1 }))
      besideTen.push(await overIdeal(() => sluiceSide(redis.path), { backlog, smallTenants: 10 }))
    }
    const alpha10000 = await overIdeal(
      () =>
        sluiceSide(redis.path, {
          alpha: 10_000 / ALPHA_TIMES_FASTER,
          maxProgressMs: 60_000 / ALPHA_TIMES_FASTER,
          maxWaitMs: 60_000 / ALPHA_TIMES_FASTER,
        }),
      { backlog, smallTenants: 1 },
    )
    const bullmq = await overIdeal(() => bullmqSide(redis.path), { backlog: backlogBullmq, smallTenants: 1 })

    const [one, ten] = [median(besideOne), median(besideTen)]
    return {
      smallTenantOverIdeal: Math.max(one, ten),
      oneSmallTenantOverIdeal: one,
      tenSmallTenantsOverIdeal: ten,
      smallTenantBacklog: backlog,
      smallTenantOverIdealBullmq: bullmq,
      smallTenantBacklogBullmq: backlogBullmq,
      alpha0SmallTenantOverIdeal: one,
      alpha10000SmallTenantOverIdeal: alpha10000,
      alpha10000OriginalHoldSeconds: originalProgressHoldSeconds({ alpha: 10_000, jobs: SMALL_JOBS }),
    }
  },
}

/**
 * The time from submit to the last effect of the small tenants, over what an ideal scheduler that divides the
 * throughput of this very run equally would have given them. As the throughput is the same on both sides of the
 * fraction, it is a fraction of jobs: those that ran meanwhile over those that had to.
 */
async function finishOverIdeal(
  side: Side,
  { backlog, smallTenants }: { backlog: number; smallTenants: number },
): Promise<number> {
  const smallJobs = smallTenants * SMALL_JOBS
  const effects = new Effects(backlog + smallJobs)
  let smallLeft = smallJobs
  let resolveSmall: () => void = () => {}
  const smallDone = new Promise<void>((resolve) => {
    resolveSmall = resolve
  })

  await side.submit(tenantJobs('large', backlog))
  const worker = await side.work({ concurrency: CONCURRENCY }, async (payload) => {
    await sleep(HANDLER_MS)
    effects.record(payload)
    if (jobNumber(payload) >= backlog && --smallLeft === 0) resolveSmall()
  })
  await sleep(HEAD_START_MS)

  const countBefore = effects.count
  await side.submit(smallTenantJobs(smallTenants, backlog))
  await smallDone
  const ranMeanwhile = effects.count - countBefore
  await worker.close()
  effects.assertNeverTwice('small tenant')

  // Equal weights, everyone backlogged: the small ones finish when each of them and the large one had its hundred.
  return ranMeanwhile / (SMALL_JOBS * (smallTenants + 1))
}

function* smallTenantJobs(tenants: number, from: number): Generator<BenchJob> {
  for (let tenant = 0; tenant < tenants; tenant++) {
    yield* tenantJobs(`small-${tenant}`, SMALL_JOBS, from + tenant * SMALL_JOBS)
  }
}
