import { afterEach, expect, it } from 'vitest'
import { type LogEntry, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { until } from './engine.ts'

let server: TestRedis | undefined

afterEach(() => server?.stop())

// A run has 30 s to end, and a call is repeated for 45 s: neither is waited for by a process that has nothing to do.
const SOON_MS = 20_000

it('a process that has nothing to do closes soon although Redis is gone', async () => {
  server = await startRedis()
  const log: LogEntry[] = []
  const sluice = new Sluice({ redis: { path: server.path }, log: (entry) => log.push(entry) })
  const queue = sluice.queue('q')
  let runs = 0
  queue.process('T', () => {
    runs += 1
  })
  await queue.aggregate('T', () => 'made')
  await queue.submit({ type: 'T' })
  await until(async () => (await queue.counts()).succeeded === 1)

  await server.kill()
  // It looks for work, in vain.
  await new Promise((resolve) => setTimeout(resolve, 300))
  const startedAt = performance.now()
  await sluice.close()

  expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
  expect(runs).toBe(1)
  expect(log.filter(({ event }) => event === 'worker.close-unconfirmed')).toEqual([])
})
