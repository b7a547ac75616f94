import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisCpuMicros } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import type { Side } from '../sides/side.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { interleavedJobs } from '../workload.ts'

const MANY_TENANTS = 1_000

/** How fast jobs are taken in, for one tenant and for a stream that mixes a thousand. */
export const submit: Measure = {
  name: 'submit',
  title: 'bulk submit',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    // More jobs where they go faster, so that every side is timed over about a second.
    const counts = { bullmq: quick ? 10_000 : 50_000, sluice: quick ? 60_000 : 400_000 }

    // BullMQ knows no tenants: its one figure stands beside both of ours.
    const sides = { bullmq: 1, sluice: 1, sluice1000Tenants: MANY_TENANTS }
    const names = Object.keys(sides) as (keyof typeof sides)[]
    const figures = await alternate(names, { rounds: quick ? 3 : 5, warmUps: 1 }, async (name, { warmUp }) => {
      const side: Side = name === 'bullmq' ? bullmqSide(redis.path) : sluiceSide(redis.path)
      try {
        // Connects and loads scripts before the clock starts.
        await side.submit(interleavedJobs(1, 1))
        const cpuBefore = await redisCpuMicros(meter)
        const startedAt = performance.now()
        const jobs = counts[name === 'bullmq' ? 'bullmq' : 'sluice'] / (warmUp ? 4 : 1)
        await side.submit(interleavedJobs(jobs, sides[name]))
        const seconds = (performance.now() - startedAt) / 1_000
        const cpu = (await redisCpuMicros(meter)) - cpuBefore
        return { perSecond: jobs / seconds, redisMicros: cpu / jobs }
      } finally {
        await side.close()
        await emptyRedis(meter)
      }
    })

    return {
      submitPerSecondBullmq: figures.bullmq.perSecond,
      submitPerSecond: figures.sluice.perSecond,
      submitPerSecond1000Tenants: figures.sluice1000Tenants.perSecond,
      submitRatioBullmq: figures.sluice.perSecond / figures.bullmq.perSecond,
      submitRatio1000Tenants: figures.sluice1000Tenants.perSecond / figures.bullmq.perSecond,
      submitRedisMicrosBullmq: figures.bullmq.redisMicros,
      submitRedisMicros: figures.sluice.redisMicros,
      submitRedisMicros1000Tenants: figures.sluice1000Tenants.redisMicros,
    }
  },
}
