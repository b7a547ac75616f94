import type { BenchContext, Figures, Measure } from '../measure.ts'
import { emptyRedis, redisBytes } from '../redis-meter.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import { groupmqSide } from '../sides/groupmq.ts'
import type { Side } from '../sides/side.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { type BenchJob, interleavedJobs } from '../workload.ts'

const TENANTS = 10
const GIVEN_ID_BYTES = 40

/** What a waiting job takes in Redis, by the growth of its memory. */
export const memory: Measure = {
  name: 'memory',
  title: 'Redis bytes per waiting job',
  kind: 'counting',

  async run({ redis, meter, quick }: BenchContext): Promise<Figures> {
    const count = 200_000
    // The peers take several keys a job, so their bytes a job do not depend on how many there are.
    const peerCount = quick ? 15_000 : 200_000

    async function bytesPerJob(open: (path: string) => Side, jobs: Iterable<BenchJob>, of: number): Promise<number> {
      // Once before the count begins: what a side keeps once (scripts, the queue's own record) is no job's.
      const warmUp = open(redis.path)
      await warmUp.submit(interleavedJobs(1, 1))
      await warmUp.close()
      await emptyRedis(meter)
      const before = await redisBytes(meter)
      const side = open(redis.path)
      await side.submit(jobs)
      await side.close()
      const after = await redisBytes(meter)
      await emptyRedis(meter)
      return (after - before) / of
    }

    const bullmq = await bytesPerJob(bullmqSide, interleavedJobs(peerCount, TENANTS), peerCount)
    const groupmq = await bytesPerJob(groupmqSide, interleavedJobs(peerCount, TENANTS), peerCount)
    const sluice = await bytesPerJob(sluiceSide, interleavedJobs(count, TENANTS), count)
    const givenIds = await bytesPerJob(sluiceSide, withIds(interleavedJobs(count, TENANTS)), count)
    const bullmqGivenIds = await bytesPerJob(bullmqSide, withIds(interleavedJobs(peerCount, TENANTS)), peerCount)
    return {
      bytesPerJobBullmq: bullmq,
      bytesPerJobGroupmq: groupmq,
      bytesPerJob: sluice,
      bytesPerJobGivenIds: givenIds,
      bytesPerJobGivenIdsBullmq: bullmqGivenIds,
      bytesPerJobRatioBullmq: sluice / bullmq,
      bytesPerJobRatioGroupmq: sluice / groupmq,
      bytesPerJobGivenIdsRatioBullmq: givenIds / bullmq,
    }
  },
}

function* withIds(jobs: Iterable<BenchJob>): Generator<BenchJob> {
  for (const job of jobs) yield { ...job, id: `order-${String(job.payload.n).padStart(GIVEN_ID_BYTES - 6, '0')}` }
}
