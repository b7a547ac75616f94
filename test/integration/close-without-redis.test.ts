import { afterEach, expect, it } from 'vitest'
import { LAST_WORDS_MS } from '../../src/engine/last-words.ts'
import { type LogEntry, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { until } from '../support/until.ts'

let server: TestRedis | undefined

afterEach(() => server?.stop())

// Redis is waited for once, to tell it what is left. Waited for twice it would take as long again; a busy machine takes less.
const SOON_MS = LAST_WORDS_MS + 3_000

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

it('a handler that is left behind reads that its job runs again; the process ends with its grace and a few seconds, and says no more than it must', async () => {
  server = await startRedis()
  const log: LogEntry[] = []
  const sluice = new Sluice({ redis: { path: server.path }, log: (entry) => log.push(entry) })
  const shutdownGraceMs = 100
  const queue = sluice.queue('q', { shutdownGraceMs, audit: { idleStepMs: 10, stepMs: 10, everyMs: 1_000 } })
  let started = () => {}
  const running = new Promise<void>((resolve) => {
    started = resolve
  })
  let reason: Error | undefined
  queue.process('T', (_, { signal }) => {
    signal.addEventListener('abort', () => {
      reason = signal.reason as Error
    })
    started()
    return new Promise(() => {})
  })
  await queue.submit({ type: 'T' })
  await running

  await server.kill()
  // Some step of the audit fails, and the store has been away for long enough to be missed.
  await until(async () => log.some(({ event }) => event === 'store.away'))
  const startedAt = performance.now()
  await sluice.close()

  expect(performance.now() - startedAt).toBeLessThan(shutdownGraceMs + SOON_MS)
  expect(reason?.message).toBe(
    'The queue "q" is closed. This process is shutting down, and the grace of its jobs is over (shutdownGraceMs): the job goes back, and runs again in another process or after the restart.',
  )
  expect(log.map(({ event }) => event)).toEqual(['store.away', 'worker.close-unconfirmed'])
})
