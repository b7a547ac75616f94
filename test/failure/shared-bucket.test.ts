import { afterEach, expect, it } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { Trial } from './trial.ts'

let trial: Trial
let sluice: Sluice
afterEach(async () => {
  await sluice.close()
  await trial.stop()
})

it('lets two queues of two processes together send no more to their upstream than the bucket they share allows', async () => {
  const [permits, calls] = [100, 150]
  const sharedLimit = { name: 'upstream', definition: `${permits}/s` }
  trial = await Trial.start({ upstream: true, history: false })
  const queues = ['sync', 'backfill']
  await Promise.all(queues.map((queue) => trial.worker({ queue, sharedLimit, concurrency: 50 })))
  sluice = new Sluice({ redis: trial.redis.url })
  const upstream = sluice.limit(sharedLimit.name, sharedLimit.definition)
  const jobs = Array.from({ length: calls }, (_, at) => ({ type: 'CALL', payload: { name: `call-${at}` } }))

  for (const queue of queues) await sluice.queue(queue, { limits: { upstream } }).submit({ jobs })
  await expect.poll(() => trial.upstream?.total(), { timeout: 20_000, interval: 50 }).toBeGreaterThanOrEqual(2 * calls)

  const report = await trial.upstream?.report({ permits, windowMs: 1_000 })
  expect(report?.busiest.count).toBeLessThanOrEqual(permits)
})
