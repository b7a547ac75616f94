import { afterEach, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Scenario } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

it('a Redis that was emptied gets its queue and limits back from whoever uses it, and closes them for a window', async () => {
  const permits = 100
  const windowMs = 1_000
  scenario = await Scenario.start({ upstream: true, queue: { limits: { queue: `${permits}/s` }, leaseMs: 3_000 } })
  const worker = await scenario.worker()
  await scenario.submitted({ count: 200 })
  await worker.ended(200)

  await scenario.redis.client().flushall()
  const emptied = now()
  const { accepted } = await scenario.submitted({ count: 200 })
  await worker.ended(400)

  expect(accepted).toBe(200)
  const limits = await scenario.queue.limits.list()
  expect(limits).toHaveLength(1)
  const report = await scenario.upstream?.report({ permits, windowMs })
  expect(report?.busiest.count).toBeLessThanOrEqual(permits)
  const arrivals = (await scenario.upstream?.arrivals()) ?? []
  const first = Math.min(...arrivals.filter(({ at }) => at > emptied).map(({ at }) => at))
  expect(first - emptied).toBeGreaterThan(windowMs)
})
