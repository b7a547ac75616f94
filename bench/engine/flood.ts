import type { Redis } from 'ioredis'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { Child, monotonicMs } from '../processes/child.ts'
import type { FromFloodProducer, FromFloodWorker, ToFloodProducer, ToFloodWorker } from '../processes/messages.ts'
import { emptyRedis } from '../redis-meter.ts'
import { scriptsCpuMs } from '../script-cpu.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { tenantJobs } from '../workload.ts'

const SMALL_TENANTS = 10
const SMALL_JOBS = 100
/** Shorter scripts are not worth a line of the server's log. */
const SLOW_MICROS = 1_000

/**
 * One tenant submits a stream of very many jobs while ten others submit a hundred each and a worker process runs
 * whatever comes. Three things are watched: when the ten finish, how much the submitting process grows, and the
 * longest time any script had Redis to itself. That time is measured twice: on the wall, as the server logs it, where the
 * server's waiting for a processor is part of it; and, in a second flood, as processor time, which is what the script
 * itself is to blame for and what is promised.
 */
export const flood: Measure = {
  name: 'flood',
  title: 'a flood beside ten small tenants',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const floodJobs = quick ? 200_000 : 1_000_000
    await meter.config('SET', 'slowlog-log-slower-than', SLOW_MICROS)
    await meter.config('SET', 'slowlog-max-len', 100_000)
    const { small, growthMegabytes, seconds } = await floodOnce(redis.path, floodJobs, [])
    const wallMs = await slowScriptsWallMs(meter)
    await emptyRedis(meter)
    await floodOnce(redis.path, floodJobs, ['metered'])
    const cpuMs = await scriptsCpuMs(meter)

    return {
      // As in small-tenant.ts: the jobs that ran meanwhile over those that had to. From when Redis had its jobs, of the
      // tenant that fared worst; and from before they were submitted, when its process waits for a processor like all others.
      floodSmallTenantOverIdeal: small.ranSinceStored / (SMALL_JOBS * (SMALL_TENANTS + 1)),
      floodSmallTenantFromSubmitOverIdeal: small.ran / (SMALL_JOBS * (SMALL_TENANTS + 1)),
      floodSmallTenantSeconds: small.seconds,
      floodJobs,
      floodSubmitPerSecond: floodJobs / seconds,
      floodProducerGrowthMegabytes: growthMegabytes,
      floodSlowestScriptCpuMs: cpuMs.reduce((a, b) => Math.max(a, b)),
      floodSlowestScriptWallMs: Math.max(0, ...wallMs),
      floodScriptsOver5MsCpu: cpuMs.filter((ms) => ms > 5).length,
      floodScriptsOver5MsWall: wallMs.filter((ms) => ms > 5).length,
    }
  },
}

async function floodOnce(redisPath: string, floodJobs: number, flags: readonly 'metered'[]) {
  const worker = new Child<ToFloodWorker, FromFloodWorker>('flood-worker.ts', [redisPath, ...flags])
  const producer = new Child<ToFloodProducer, FromFloodProducer>('flood-producer.ts', [redisPath, ...flags])
  // The small ones come from a process of their own, as other customers do.
  const side = sluiceSide(redisPath)
  const smallTenants = Array.from({ length: SMALL_TENANTS }, (_, number) => `small-${number}`)
  try {
    await Promise.all([worker.next('ready'), producer.next('ready'), side.submit([])])
    worker.send({ kind: 'expect', smallJobs: SMALL_TENANTS * SMALL_JOBS })
    const finished = worker.next('smallTenantsFinished')
    const submitted = producer.next('submitted')
    const flooding = producer.next('flooding')
    producer.send({ floodJobs })
    await flooding
    const smallSubmittedAtMs = monotonicMs()
    await Promise.all(smallTenants.map((tenant) => side.submit(tenantJobs(tenant, SMALL_JOBS))))
    const [{ growthMegabytes, seconds }] = await Promise.all([submitted, finished])
    const reported = worker.next('report')
    worker.send({ kind: 'report', sinceMs: smallSubmittedAtMs })
    return { small: await reported, growthMegabytes, seconds }
  } finally {
    await Promise.all([worker.kill(), producer.kill(), side.close()])
  }
}

/** Times of the scripts that took longer than SLOW_MICROS, as the server logged them. */
async function slowScriptsWallMs(meter: Redis): Promise<number[]> {
  const entries = (await meter.slowlog('GET', -1)) as [id: number, at: number, micros: number, command: string[]][]
  const scripts = entries.filter(([, , , command]) => /^fcall/i.test(command[0] ?? ''))
  return scripts.map(([, , micros]) => micros / 1_000)
}
