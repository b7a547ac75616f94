import { startRedis } from '../../src/testing/redis-server.ts'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { Child } from '../processes/child.ts'
import type { FromHangingWorker } from '../processes/messages.ts'
import { bullmqSide } from '../sides/bullmq.ts'
import type { Product } from '../sides/limited.ts'
import { sluiceSide } from '../sides/sluice.ts'
import { tenantJobs } from '../workload.ts'

/** From `kill −9` of a worker with a job in hand until another process starts that job again, at the defaults. */
export const recovery: Measure = {
  name: 'recovery',
  title: 'kill −9 of a worker until its job runs again',
  kind: 'waiting',

  async run({ redis }: BenchContext): Promise<Figures> {
    const peerRedis = await startRedis()
    try {
      const [sluice, bullmq] = await Promise.all([
        recoverySeconds('sluice', redis.path),
        recoverySeconds('bullmq', peerRedis.path),
      ])
      return { recoverySeconds: sluice, recoverySecondsBullmq: bullmq }
    } finally {
      await peerRedis.stop()
    }
  },
}

async function recoverySeconds(product: Product, redisPath: string): Promise<number> {
  const open = (): Child<never, FromHangingWorker> => new Child('hanging-worker.ts', [product, redisPath])
  const victim = open()
  const producer = product === 'sluice' ? sluiceSide(redisPath) : bullmqSide(redisPath)
  try {
    await victim.next('ready')
    const started = victim.next('jobStarted')
    await producer.submit(tenantJobs('only', 1))
    await started
    const heir = open()
    try {
      await heir.next('ready')
      const startedAgain = heir.next('jobStarted')
      await victim.kill()
      const killedAt = performance.now()
      await startedAgain
      return (performance.now() - killedAt) / 1_000
    } finally {
      await heir.kill()
    }
  } finally {
    await victim.kill()
    await producer.close()
  }
}
