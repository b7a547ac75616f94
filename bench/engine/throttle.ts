import type { BenchContext, Figures, Measure } from '../measure.ts'
import { type OriginalFlowResult, runOriginalFlow } from '../original-flow.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { Effects, interleavedJobs } from '../workload.ts'

const JOBS = 15_000
const TENANTS = 3
const RATE_PER_SECOND = 10
const CONCURRENCY = 50

/**
 * The original's load test: 15,000 jobs of three tenants under 10/s each, ideally done in 500 s. The original runs on
 * virtual time. Sluice runs for real, scaled in time: the rates are multiplied and the ideal divided by one factor.
 */
export const throttle: Measure = {
  name: 'throttle',
  title: 'throttle moves and time over ideal',

  async run({ redis, quick }: BenchContext): Promise<Figures> {
    const timesFaster = quick ? 100 : 50
    const ratePerSecond = RATE_PER_SECOND * timesFaster
    const side = sluiceSide(redis.path, { limits: { tenant: `${ratePerSecond}/s` } })
    const effects = new Effects(JOBS)
    await side.submit(interleavedJobs(JOBS, TENANTS))
    const startedAt = performance.now()
    const worker = await side.work({ concurrency: CONCURRENCY }, (payload) => effects.record(payload))
    await effects.done
    const seconds = (performance.now() - startedAt) / 1_000
    await worker.close()
    effects.assertOncePerJob('sluice')
    // A denied job is not touched. What is moved is a job whose grant had gone stale before it could start.
    const { returned: moves } = await side.counts()
    await side.close()

    const idealSeconds = JOBS / (TENANTS * ratePerSecond)
    return {
      throttleMovesPerJob: moves / JOBS,
      overIdealPercent: (seconds / idealSeconds - 1) * 100,
      throttleTimesFaster: timesFaster,
      ...original('Rechecked', { rechecksOnPromotion: true, dequeuesPerTick: 2 }),
      ...original('Escaping', { rechecksOnPromotion: false, dequeuesPerTick: 2 }),
      ...original('RecheckedFastDispatcher', { rechecksOnPromotion: true, dequeuesPerTick: 10 }),
      ...original('EscapingFastDispatcher', { rechecksOnPromotion: false, dequeuesPerTick: 10 }),
    }
  },
}

function original(reading: string, options: { rechecksOnPromotion: boolean; dequeuesPerTick: number }): Figures {
  const result: OriginalFlowResult = runOriginalFlow({
    jobs: JOBS,
    tenants: TENANTS,
    ratePerSecond: RATE_PER_SECOND,
    ...options,
  })
  return {
    [`original${reading}MovesPerJob`]: result.movesPerJob,
    [`original${reading}OverIdealPercent`]: result.overIdealPercent,
    [`original${reading}MaxOverLimit`]: result.maxOverLimit,
  }
}
