import { afterEach, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Scenario } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

const permits = 200
const windowMs = 3_000

it('a Redis that was emptied gets its queue and limits back from whoever uses it, and closes them for a window', async () => {
  const limit = { kind: 'bucket', limit: permits, windowMs } as const
  scenario = await Scenario.start({ upstream: true, queue: { limits: { queue: limit }, leaseMs: 3_000 } })
  const worker = await scenario.worker()
  await submit('before')
  await worker.ended(100)

  await scenario.redis.client().flushall()
  const emptied = now()
  await submit('after')
  const limits = await scenario.queue.limits.list()
  await worker.ended(200)

  // As soon as it is known again: a worker that comes late would hide that it is open.
  expect(limits).toMatchObject([{ remaining: 0, closedUntil: expect.any(Number) }])
  const report = await scenario.upstream?.report({ permits, windowMs })
  expect(report).toMatchObject({ total: 200 })
  expect(report?.busiest.count).toBeLessThanOrEqual(permits)
  const arrivals = (await scenario.upstream?.arrivals()) ?? []
  const first = Math.min(...arrivals.filter(({ at }) => at > emptied).map(({ at }) => at))
  expect(first - emptied).toBeGreaterThan(windowMs)
})

/** By a process that has known the queue before. */
async function submit(prefix: string): Promise<void> {
  const jobs = Array.from({ length: 100 }, (_, index) => ({ tenant: 'a', payload: { name: `${prefix}-${index}` } }))
  await scenario.queue.submit({ type: 'CALL', jobs })
}
