import { expect, it, onTestFinished } from 'vitest'
import { type Queue, Sluice } from '../../src/index.ts'
import { startRedis } from '../../src/testing/redis-server.ts'

// A call that changes something is repeated for 45 s.
const SOON_MS = 20_000

const reads: Record<string, (queue: Queue) => Promise<unknown>> = {
  'action.view': (queue) => queue.action('one', { tenant: 'a' }).view(),
  'action.summary': (queue) => queue.action('one', { tenant: 'a' }).summary(),
  actions: (queue) => queue.actions(),
  'tenant.view': (queue) => queue.tenant('a').view(),
  counts: (queue) => queue.counts(),
  view: (queue) => queue.view(),
  workers: (queue) => queue.workers(),
  overview: (queue) => queue.overview(),
  job: (queue) => queue.job('one', { tenant: 'a' }),
  explain: (queue) => queue.explain({ tenant: 'a' }),
  'limits.list': (queue) => queue.limits.list(),
  'congestion.of': (queue) => queue.congestion.of('a'),
  'congestion.summary': (queue) => queue.congestion.summary(),
  'schedules.list': (queue) => queue.schedules.list(),
  'schedules.get': (queue) => queue.schedules.get('one'),
  'deadLetters.list': (queue) => queue.deadLetters.list(),
}

it.each(['has known it', 'has never met it'])(
  'every read rejects when Redis was waited for as long as a command may take, in a process that %s',
  async (how) => {
    const server = await startRedis()
    const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: 300, log: () => {} })
    onTestFinished(async () => {
      await sluice.close()
      await server.stop()
    })
    const queue = sluice.queue('q')
    if (how === 'has known it') await queue.counts()
    await server.kill()

    const startedAt = performance.now()
    const codes = await Promise.all(
      Object.entries(reads).map(async ([name, read]) => [name, await read(queue).catch((error) => error.code)]),
    )

    expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
    expect(codes).toEqual(Object.keys(reads).map((name) => [name, 'SLUICE_STORE_UNAVAILABLE']))
  },
)

it('who waits for an action is not disturbed by a Redis that is away for longer than a read would wait', async () => {
  const server = await startRedis({ appendonly: true })
  const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: 200, log: () => {} })
  onTestFinished(async () => {
    await sluice.close()
    await server.stop()
  })
  const queue = sluice.queue('q')
  const action = await queue.submit({ type: 'T', tenant: 'a', jobs: [{}] })

  const finished = action.finished({ timeoutMs: 60_000 })
  const drained = queue.drain()
  await queue.counts()
  await server.kill()
  await expect(queue.counts()).rejects.toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE' })
  await server.restart()
  queue.process('T', () => 'done')

  expect(await finished).toMatchObject({ state: 'COMPLETED' })
  await drained
})
