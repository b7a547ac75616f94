import { afterEach, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Trial } from './trial.ts'

let trial: Trial
afterEach(() => trial.stop())

const permits = 200
const windowMs = 3_000

it('a Redis that was emptied gets its queue and limits back from whoever uses it, and closes them for a window', async () => {
  const limit = { kind: 'bucket', limit: permits, windowMs } as const
  trial = await Trial.start({ upstream: true, queue: { limits: { queue: limit }, leaseMs: 3_000 } })
  const worker = await trial.worker()
  await submit('before')
  await worker.ended(100)

  await trial.redis.client().flushall()
  const emptied = now()
  await submit('after')
  const limits = await trial.queue.limits.list()
  await worker.ended(200)

  // As soon as it is known again: a worker that comes late would hide that it is open.
  expect(limits).toMatchObject([{ remaining: 0, closedUntil: expect.any(Number) }])
  const report = await trial.upstream?.report({ permits, windowMs })
  expect(report).toMatchObject({ total: 200 })
  expect(report?.busiest.count).toBeLessThanOrEqual(permits)
  const arrivals = (await trial.upstream?.arrivals()) ?? []
  const first = Math.min(...arrivals.filter(({ at }) => at > emptied).map(({ at }) => at))
  expect(first - emptied).toBeGreaterThan(windowMs)
})

/** By a process that has known the queue before. */
async function submit(prefix: string): Promise<void> {
  const jobs = Array.from({ length: 100 }, (_, index) => ({ tenant: 'a', payload: { name: `${prefix}-${index}` } }))
  await trial.queue.submit({ type: 'CALL', jobs })
}
