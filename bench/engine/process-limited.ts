import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'
import { runToDone } from '../run-to-done.ts'
import { groupmqSide } from '../sides/groupmq.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { interleavedJobs } from '../workload.ts'

const CONCURRENCY = 50
const TENANTS = 1_000
/**
 * A thousand of these let far more through than anything here can run, so what is measured is the cost of asking them:
 * a turn wants four jobs, the bucket has three at once and denies the fourth.
 */
const TENANT_LIMIT = '300/s'
const LEAST_DENIED = 0.3
/** Jobs in a turn, by default. */
const QUANTUM = 4

/** A thousand tenants, each under a bucket that says no at the end of its turns; GroupMQ beside it has no limits. */
export const processLimited: Measure = {
  name: 'process-limited',
  title: 'no-op jobs, 1,000 tenants with a bucket each',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const counts = quick ? { groupmq: 10_000, sluice: 20_000 } : { groupmq: 80_000, sluice: 200_000 }
    const figures = await alternate(
      ['groupmq', 'sluice'] as const,
      { rounds: quick ? 3 : 5, warmUps: 1 },
      async (name, { warmUp }) => {
        const sluice = name === 'sluice' ? sluiceSide(redis.path, { limits: { tenant: TENANT_LIMIT } }) : undefined
        const side = sluice ?? groupmqSide(redis.path)
        try {
          const jobs = counts[name] / (warmUp ? 5 : 1)
          const ran = await runToDone(meter, side, {
            name,
            jobs: interleavedJobs(jobs, TENANTS),
            count: jobs,
            concurrency: CONCURRENCY,
          })
          // A turn that no bucket ended took four jobs, so there were at most a quarter as many of them as of jobs.
          const parked = (await sluice?.counts())?.parked ?? 0
          return { ...ran, denied: parked / (parked + jobs / QUANTUM) }
        } finally {
          await side.close()
          await emptyRedis(meter)
        }
      },
    )

    const { groupmq, sluice } = figures
    if (sluice.denied < LEAST_DENIED) throw new Error(`only ${sluice.denied} of the turns ended with a denial`)
    return {
      processPerSecondLimited1000Groupmq: groupmq.perSecond,
      processPerSecondLimited1000: sluice.perSecond,
      processRatioLimited1000: sluice.perSecond / groupmq.perSecond,
      limited1000DeniedTurns: sluice.denied,
      redisMicrosLimited1000Groupmq: groupmq.redisMicros,
      redisMicrosLimited1000: sluice.redisMicros,
    }
  },
}
