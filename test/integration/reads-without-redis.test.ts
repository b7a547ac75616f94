import { expect, it, onTestFinished } from 'vitest'
import { type Queue, Sluice } from '../../src/index.ts'
import { Metrics } from '../../src/observe/metrics.ts'
import { storeOf } from '../../src/sluice.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { startRedis } from '../../src/testing/redis-server.ts'
import { until } from '../support/until.ts'

const COMMAND_MS = 3_000
// What waits twice takes as long again, and what is repeated as a change is takes 45 s; a machine that is busy takes less.
const SOON_MS = COMMAND_MS + 2_500

interface Process {
  readonly sluice: Sluice
  readonly queue: Queue
  readonly metrics: Metrics
}

const reads: Record<string, (process: Process) => Promise<unknown>> = {
  'action.view': ({ queue }) => queue.action('one', { tenant: 'a' }).view(),
  'action.summary': ({ queue }) => queue.action('one', { tenant: 'a' }).summary(),
  'action.results': ({ queue }) => queue.action('one', { tenant: 'a' }).results().next(),
  actions: ({ queue }) => queue.actions(),
  'tenant.view': ({ queue }) => queue.tenant('a').view(),
  tenants: ({ queue }) => queue.tenants().next(),
  counts: ({ queue }) => queue.counts(),
  view: ({ queue }) => queue.view(),
  workers: ({ queue }) => queue.workers(),
  overview: ({ queue }) => queue.overview(),
  job: ({ queue }) => queue.job('one', { tenant: 'a' }),
  explain: ({ queue }) => queue.explain({ tenant: 'a' }),
  'events that there are': ({ queue }) => queue.events({ from: '0', follow: false }).next(),
  'limits.list': ({ queue }) => queue.limits.list(),
  'limits.status': ({ queue }) => queue.limits.status('queue'),
  'congestion.of': ({ queue }) => queue.congestion.of('a'),
  'congestion.summary': ({ queue }) => queue.congestion.summary(),
  'congestion.history': ({ queue }) => queue.congestion.history(),
  'schedules.list': ({ queue }) => queue.schedules.list(),
  'schedules.get': ({ queue }) => queue.schedules.get('one'),
  'deadLetters.list': ({ queue }) => queue.deadLetters.list(),
  'deadLetters.count': ({ queue }) => queue.deadLetters.count({ all: true }),
  'deadLetters.countAll': ({ queue }) => queue.deadLetters.countAll({ tenant: 'a' }).finished,
  'status of a shared limit': ({ sluice }) => sluice.limit('upstream').status(),
  'status of a shared limit that is new': ({ sluice }) => sluice.limit('another', '5/s').status(),
  metrics: ({ metrics }) => metrics.expose({ openStreams: 0, connections: 0 }),
}

it.each(['has known it', 'has never met it', 'has only looked for work in it'])(
  'every read rejects when Redis was waited for as long as a command may take, in a process that %s and waits to change things',
  async (how) => {
    const server = await startRedis()
    const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: COMMAND_MS, log: () => {} })
    const limit = sluice.limit('upstream', '10/s')
    const queue = sluice.queue('q')
    const metrics = new Metrics({ queues: new Map([['q', queue]]), store: storeOf(sluice) })
    onTestFinished(async () => {
      metrics.close()
      await sluice.close()
      await server.stop()
    })
    if (how === 'has known it') await Promise.all([queue.counts(), limit.status()])
    if (how === 'has only looked for work in it') {
      queue.process('T', () => {})
      const client = server.client()
      await until(async () => (await client.zcard(`${keyPrefix('sluice', 'q')}idle`)) === 1)
    }
    await server.kill()
    // More than may be under way at once: whoever only looks does not wait behind them.
    const changes = [() => limit.reset(), ...Array(20).fill(() => queue.pause())].map((change) => change())
    for (const change of changes) change.catch(() => {})

    const found = await Promise.all(
      Object.entries(reads).map(async ([name, read]) => {
        const startedAt = performance.now()
        const code = await read({ sluice, queue, metrics }).catch((error) => error.code)
        return { name, code, isSoon: performance.now() - startedAt < SOON_MS }
      }),
    )

    expect(found).toEqual(Object.keys(reads).map((name) => ({ name, code: 'SLUICE_STORE_UNAVAILABLE', isSoon: true })))
  },
  60_000,
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
