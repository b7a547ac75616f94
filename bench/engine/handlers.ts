import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis } from '../redis-meter.ts'
import { alternate } from '../rounds.ts'
import { runToDone } from '../run-to-done.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { interleavedJobs, seededDurations, sleep } from '../workload.ts'

const DURATION_MS = { from: 20, to: 180 }
const MEAN_MS = (DURATION_MS.from + DURATION_MS.to) / 2
const TENANTS = 10

const sides = { bullmq: bullmqSide, sluice: sluiceSide }

/**
 * What a job costs Redis when handlers take as long as calls do: hands then come free one by one, and a claim has few
 * jobs to share its cost between.
 */
export const handlers: Measure = {
  name: 'handlers',
  title: 'Redis CPU per job, handlers of 20–180 ms',

  async run(context: BenchContext): Promise<Figures> {
    const at50 = await cpuWithHandlers(context, 50)
    const at300 = await cpuWithHandlers(context, 300)
    return {
      redisMicrosHandlers50Bullmq: at50.bullmq.redisMicros,
      redisMicrosHandlers50: at50.sluice.redisMicros,
      redisCpuRatioHandlers50: at50.sluice.redisMicros / at50.bullmq.redisMicros,
      redisMicrosHandlers300Bullmq: at300.bullmq.redisMicros,
      redisMicrosHandlers300: at300.sluice.redisMicros,
      redisCpuRatioHandlers300: at300.sluice.redisMicros / at300.bullmq.redisMicros,
      handlersPerSecond50Bullmq: at50.bullmq.perSecond,
      handlersPerSecond50: at50.sluice.perSecond,
      handlersPerSecond300Bullmq: at300.bullmq.perSecond,
      handlersPerSecond300: at300.sluice.perSecond,
    }
  },
}

async function cpuWithHandlers({ redis, meter, quick }: BenchContext, concurrency: number) {
  const seconds = quick ? 2 : 10
  const count = Math.round((concurrency * seconds * 1_000) / MEAN_MS)
  const names = Object.keys(sides) as (keyof typeof sides)[]
  return alternate(names, { rounds: quick ? 1 : 3, warmUps: 0 }, async (name) => {
    const side = sides[name](redis.path)
    const durationMs = seededDurations(concurrency, DURATION_MS)
    try {
      return await runToDone(meter, side, {
        name,
        jobs: interleavedJobs(count, TENANTS),
        count,
        concurrency,
        handler: () => sleep(durationMs()),
      })
    } finally {
      await side.close()
      await emptyRedis(meter)
    }
  })
}
