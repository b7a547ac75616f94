import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { type Queue, Sluice } from '../../src/index.ts'
import { finished } from '../../src/testing/finished.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { all } from '../support/all.ts'

// What Redis is asked for is repeated for 45 s; what a wait is bounded by comes first.
const SOON_MS = 15_000
const WAIT_MS = 200

let server: TestRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

interface Ending {
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

const waits: Record<string, (queue: Queue, ending: Ending) => Promise<unknown>> = {
  'action.finished, by its time-out': (queue, { timeoutMs }) =>
    queue.action('one', { tenant: 'a' }).finished({ timeoutMs }),
  'action.finished, by its signal': (queue, { signal }) => queue.action('one', { tenant: 'a' }).finished({ signal }),
  'action.progress': (queue, { signal }) => all(queue.action('one', { tenant: 'a' }).progress({ signal })),
  drain: (queue, { signal }) => queue.drain({ signal }),
  'drain of a tenant': (queue, { signal }) => queue.drain({ tenant: 'a', signal }),
  'finished of sluice/testing': (queue, { timeoutMs }) => finished(queue, 'one', { timeoutMs }),
  events: async (queue, { signal }) => `${(await all(queue.events({ signal }))).length} events`,
}
const ends: Record<string, string> = {
  'action.finished, by its time-out': 'SLUICE_WAITED_TOO_LONG',
  'finished of sluice/testing': 'SLUICE_WAITED_TOO_LONG',
  events: '0 events',
}

it.each(['has known it', 'has never met it'])(
  'whoever waits in a process that %s is told in time though Redis is away',
  { timeout: 60_000 },
  async (how) => {
    await server.restart()
    const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: 300, log: () => {} })
    onTestFinished(() => sluice.close())
    const queue = sluice.queue('q')
    if (how === 'has known it') await queue.submit({ tenant: 'a', action: 'one', type: 'T', jobs: [{}] })
    await server.kill()

    const startedAt = performance.now()
    const told = await Promise.all(
      Object.entries(waits).map(async ([name, wait]) => {
        const ending = { timeoutMs: WAIT_MS, signal: AbortSignal.timeout(WAIT_MS) }
        return [name, await wait(queue, ending).catch((error) => error.code)]
      }),
    )

    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
    expect(told).toEqual(Object.keys(waits).map((name) => [name, ends[name] ?? DOMException.TIMEOUT_ERR]))
  },
)

it('refuses options of drain that are none at once, with or without Redis', async () => {
  const sluice = new Sluice({ redis: { path: `${server.path}-gone` }, commandTimeoutMs: 300, log: () => {} })
  onTestFinished(() => sluice.close())

  const refused = sluice.queue('q').drain({ tennant: 'a' } as object)

  await expect(refused).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
})
