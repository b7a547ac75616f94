import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { busyOne, Scenario } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

// With `always` a reply means that the write is on disk; anything less may lose the last seconds, and says so.
const durable = { appendonly: true, config: { appendfsync: 'always' } }

describe('Redis killed −9 and started again on its append-only file', () => {
  it('has lost no acknowledged job, and no job runs without reason', async () => {
    scenario = await Scenario.start({ redis: durable, upstream: true, queue: { leaseMs: 3_000 } })
    const workers = await Promise.all([scenario.worker(), scenario.worker()])
    const given = scenario.stream()
    const generated = scenario.stream({ ids: 'generated' })

    for (let round = 1; round <= 3; round++) {
      await busyOne(workers, 300 * round)
      const fault = scenario.fault('redis-kill')
      await scenario.redis.kill('SIGKILL')
      await scenario.redis.restart()
      fault.end()
    }
    await Promise.all([given.finish(), generated.finish()])

    await scenario.expectPromisesKept()
  })

  it('keeps short limits closed for a window after its restart', async () => {
    const permits = 100
    const windowMs = 1_000
    const jitterMs = 50
    scenario = await Scenario.start({
      redis: durable,
      upstream: true,
      queue: { limits: { queue: `${permits}/s` }, leaseMs: 3_000 },
    })
    const worker = await scenario.worker()
    await scenario.submitted({ count: 500 })
    await worker.started(100)

    const fault = scenario.fault('redis-kill')
    await scenario.redis.kill('SIGKILL')
    const before = now()
    await scenario.redis.restart()
    const back = now()
    fault.end()
    await worker.ended(500)

    const report = await scenario.upstream?.report({ permits, windowMs })
    expect(report?.busiest.count).toBeLessThanOrEqual(permits)
    await scenario.expectPromisesKept({
      limits: [{ permits, windowMs }],
      // From its first script on, which no worker can send before it is started.
      closed: [{ from: back, to: before + windowMs + jitterMs }],
    })
  })
})

it('leaves tenants that it had nothing of all of their day when it is stopped and started again', async () => {
  const daily = { kind: 'window', limit: 10_000, windowMs: 86_400_000 } as const
  scenario = await Scenario.start({ redis: durable, queue: { limits: { tenant: { daily } } } })
  const worker = await scenario.worker()
  await scenario.submitted({ count: 5 })
  await worker.ended(5)

  const fault = scenario.fault('redis-kill')
  await scenario.redis.kill('SIGTERM')
  await scenario.redis.restart()
  fault.end()
  await scenario.submitted({ count: 5 })
  await worker.ended(10)

  const status = await scenario.queue.limits.status('daily', 'newcomer')
  expect(status).toMatchObject({ limit: 10_000, isEstimated: false })
  // Two seconds of a day at full rate; none if the day ended meanwhile.
  expect(status?.used).toBeLessThanOrEqual(1)
})
