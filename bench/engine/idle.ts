import type { Redis } from 'ioredis'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import type { BenchContext, Figures, Measure } from '../measure.ts'
import { Child } from '../processes/child.ts'
import type { FromHangingWorker } from '../processes/messages.ts'
import type { Product } from '../sides/limited.ts'
import { sleep } from '../workload.ts'

/** What a process asks while it starts is not what it asks while it idles. */
const SETTLE_MS = 8_000
const WATCHED_MS = 60_000

/** Requests of one idle worker process on the wire, in a minute. */
export const idle: Measure = {
  name: 'idle',
  title: 'requests a minute while idle',
  kind: 'waiting',

  async run({ redis }: BenchContext): Promise<Figures> {
    // Side by side on a Redis each: they do next to nothing, for more than a minute.
    const peerRedis = await startRedis()
    try {
      const [sluice, bullmq] = await Promise.all([
        idleRequestsPerMinute('sluice', redis),
        idleRequestsPerMinute('bullmq', peerRedis),
      ])
      return { idleRequestsPerMinute: sluice, idleRequestsPerMinuteBullmq: bullmq }
    } finally {
      await peerRedis.stop()
    }
  },
}

async function idleRequestsPerMinute(product: Product, redis: TestRedis): Promise<number> {
  const worker = new Child<never, FromHangingWorker>('hanging-worker.ts', [product, redis.path])
  let monitor: Redis | undefined
  try {
    await worker.next('ready')
    await sleep(SETTLE_MS)
    monitor = await redis.client().monitor()
    let requests = 0
    monitor.on('monitor', (_time: string, _command: string[], source: string) => {
      // What a script calls is no request.
      if (source !== 'lua') requests++
    })
    await sleep(WATCHED_MS)
    return requests / (WATCHED_MS / 60_000)
  } finally {
    monitor?.disconnect()
    await worker.kill()
  }
}
