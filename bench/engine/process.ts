import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'
import { runToDone } from '../run-to-done.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import { groupmqSide } from '../sides/groupmq.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { interleavedJobs } from '../workload.ts'

const CONCURRENCY = 50
const TENANTS = 10

const sides = { bullmq: bullmqSide, groupmq: groupmqSide, sluice: sluiceSide }
/** More jobs where they run faster, so that every side is timed over seconds. */
const COUNTS = {
  quick: { bullmq: 8_000, groupmq: 4_000, sluice: 30_000 },
  full: { bullmq: 60_000, groupmq: 30_000, sluice: 200_000 },
}

/** Jobs that do nothing, one process: what the queue itself costs, in time and in processor time of Redis. */
export const processNoop: Measure = {
  name: 'process',
  title: 'no-op jobs, 10 tenants',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const counts = quick ? COUNTS.quick : COUNTS.full
    const names = Object.keys(sides) as (keyof typeof sides)[]
    const figures = await alternate(names, { rounds: quick ? 3 : 5, warmUps: 1 }, async (name, { warmUp }) => {
      const side = sides[name](redis.path)
      try {
        const jobs = counts[name] / (warmUp ? 5 : 1)
        return await runToDone(meter, side, {
          name,
          jobs: interleavedJobs(jobs, TENANTS),
          count: jobs,
          concurrency: CONCURRENCY,
        })
      } finally {
        await side.close()
        await emptyRedis(meter)
      }
    })

    const { bullmq, groupmq, sluice } = figures
    return {
      processPerSecondBullmq: bullmq.perSecond,
      processPerSecondGroupmq: groupmq.perSecond,
      processPerSecond: sluice.perSecond,
      processRatioBullmq: sluice.perSecond / bullmq.perSecond,
      processRatioGroupmq: sluice.perSecond / groupmq.perSecond,
      redisMicrosBullmq: bullmq.redisMicros,
      redisMicrosGroupmq: groupmq.redisMicros,
      redisMicros: sluice.redisMicros,
      redisCpuRatioBullmq: sluice.redisMicros / bullmq.redisMicros,
    }
  },
}
