import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Trial } from './trial.ts'
import { busyOne } from './worker.ts'

let trial: Trial
afterEach(() => trial.stop())

// With `always` a reply means that the write is on disk; anything less may lose the last seconds, and says so.
const durable = { appendonly: true, config: { appendfsync: 'always' } }

describe('Redis killed −9 and started again on its append-only file', () => {
  it('has lost no acknowledged job, and no job runs without reason', async () => {
    trial = await Trial.start({ redis: durable, upstream: true, queue: { leaseMs: 3_000 } })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const given = trial.stream()
    const generated = trial.stream({ ids: 'generated' })

    for (let round = 1; round <= 3; round++) {
      await busyOne(workers, 300 * round)
      const fault = trial.fault('redis-kill')
      await trial.redis.kill('SIGKILL')
      await trial.redis.restart()
      fault.end()
    }
    await Promise.all([given.finish(), generated.finish()])

    await trial.expectPromisesKept()
  })

  it('keeps short limits closed for a window after its restart', async () => {
    const permits = 100
    const windowMs = 1_000
    const jitterMs = 50
    trial = await Trial.start({
      redis: durable,
      upstream: true,
      queue: { limits: { queue: `${permits}/s` }, leaseMs: 3_000 },
    })
    const worker = await trial.worker()
    await trial.submitted({ count: 500 })
    await worker.started(100)

    const fault = trial.fault('redis-kill')
    await trial.redis.kill('SIGKILL')
    const before = now()
    await trial.redis.restart()
    const back = now()
    fault.end()
    await worker.ended(500)

    const report = await trial.upstream?.report({ permits, windowMs })
    expect(report?.busiest.count).toBeLessThanOrEqual(permits)
    await trial.expectPromisesKept({
      limits: [{ permits, windowMs }],
      // From its first script on, which no worker can send before it is started.
      closed: [{ from: back, to: before + windowMs + jitterMs }],
    })
  })
})

it('leaves tenants that it had nothing of all of their day when it is stopped and started again', async () => {
  const daily = { kind: 'window', limit: 10_000, windowMs: 86_400_000 } as const
  trial = await Trial.start({ redis: durable, queue: { limits: { tenant: { daily } } } })
  const worker = await trial.worker()
  await trial.submitted({ count: 5 })
  await worker.ended(5)

  const fault = trial.fault('redis-kill')
  await trial.redis.kill('SIGTERM')
  await trial.redis.restart()
  fault.end()
  await trial.submitted({ count: 5 })
  await worker.ended(10)

  const status = await trial.queue.limits.status('daily', 'newcomer')
  expect(status).toMatchObject({ limit: 10_000, isEstimated: false })
  // Two seconds of a day at full rate; none if the day ended meanwhile.
  expect(status?.used).toBeLessThanOrEqual(1)
})
