import { onTestFinished } from 'vitest'
import { systemClock } from '../../src/clock.ts'
import { IdlePace } from '../../src/engine/idle-pace.ts'
import { Queue } from '../../src/engine/queue.ts'
import { Waker } from '../../src/engine/waker.ts'
import type { QueueOptions } from '../../src/index.ts'
import { openRedis } from '../../src/store/redis.ts'
import type { Engine } from './engine.ts'

/**
 * Makes queues as a process of their own has them, which looks for work that it was not woken for as often as the test says.
 * They are closed with the test.
 */
export function ownProcess(engine: Engine, { heartbeatMs }: { heartbeatMs: number }) {
  const redis = openRedis({ redis: { path: engine.server.path } })
  const waker = new Waker(redis, { log: () => {}, heartbeatMs })
  const queues: Queue[] = []
  onTestFinished(async () => {
    await Promise.all(queues.map((queue) => queue.close()))
    await waker.close()
    await redis.close()
  })
  return (name: string, options?: QueueOptions): Queue => {
    const queue = new Queue({
      name,
      options,
      prefix: engine.prefix,
      redis,
      waker,
      pace: new IdlePace(),
      clock: systemClock,
      log: () => {},
      client: `own-${name}`,
      tellWebhook: undefined,
    })
    queues.push(queue)
    return queue
  }
}
