import type { Redis } from 'ioredis'
import { redisCpuMicros } from './redis-meter.ts'
import type { Side } from './sides/side.ts'
import { type BenchJob, type CallPayload, Effects } from './workload.ts'

/**
 * Puts jobs in, runs them all in this process and says how fast they ran and what they cost Redis from submit to done.
 * Every job must have had exactly one effect.
 */
export async function runToDone(
  meter: Redis,
  side: Side,
  work: {
    name: string
    jobs: Iterable<BenchJob>
    count: number
    concurrency: number
    /** @default does nothing */
    handler?: (payload: CallPayload) => Promise<void>
  },
): Promise<{ perSecond: number; redisMicros: number }> {
  const effects = new Effects(work.count)
  const { handler } = work
  const cpuBefore = await redisCpuMicros(meter)
  await side.submit(work.jobs)
  const worker = await side.work(
    { concurrency: work.concurrency },
    handler === undefined
      ? (payload) => effects.record(payload)
      : async (payload) => {
          await handler(payload)
          effects.record(payload)
        },
  )
  await effects.done
  await worker.close()
  const cpu = (await redisCpuMicros(meter)) - cpuBefore
  effects.assertOncePerJob(work.name)
  return { perSecond: effects.perSecond, redisMicros: cpu / work.count }
}
