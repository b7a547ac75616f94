import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listedNames } from '../../test/docs/markdown.ts'
import { Sluice, storeOf } from '../sluice.ts'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { Metrics } from './metrics.ts'

let server: TestRedis
let sluice: Sluice
let metrics: Metrics

beforeAll(async () => {
  server = await startRedis()
  sluice = new Sluice({ redis: { path: server.path } })
  const queue = sluice.queue('mail', { limits: { queue: '100/s', levels: { low: { kind: 'concurrency', max: 3 } } } })
  metrics = new Metrics({ queues: new Map([['mail', queue]]), store: storeOf(sluice) })
})
afterAll(async () => {
  metrics.close()
  await sluice.close()
  await server.stop()
})

it('are those that docs/metrics.md lists, each once, and no other', () => {
  expect(metrics.names.sort()).toEqual(listedNames('docs/metrics.md'))
})

it('count what is in Redis anew with every scrape, also with two at once', async () => {
  const queue = sluice.queue('mail')
  await queue.submit({ type: 'T', jobs: [{ payload: 1 }, { payload: 2 }, { payload: 3 }] })
  for (const job of await queue.claim(1)) await job.succeed()

  const texts = await Promise.all([
    metrics.expose({ openStreams: 2, connections: 5 }),
    metrics.expose({ openStreams: 2, connections: 5 }),
  ])

  for (const text of texts) {
    expect(text).toContain('sluice_jobs{queue="mail",state="waiting"} 2')
    expect(text).toContain('sluice_jobs_submitted_total{queue="mail"} 3')
    expect(text).toContain('sluice_jobs_succeeded_total{queue="mail"} 1')
    expect(text).toContain('sluice_tenants{queue="mail",level="normal",state="ready"} 1')
    expect(text).toContain('sluice_http_open_streams 2')
    expect(text).toContain('sluice_http_connections 5')
    expect(text).toContain('sluice_dead_letters{queue="mail"} 0')
    expect(text).toMatch(/sluice_redis_memory_used_bytes [1-9]\d{5,}/)
    expect(text).toContain('sluice_redis_memory_limit_bytes 0')
  }
})

it('show each limit of the queue and its levels, and forget one that is taken off', async () => {
  const queue = sluice.queue('mail')
  await queue.limits.change({ partner: '10/s' })
  const before = await metrics.expose({ openStreams: 0, connections: 0 })
  await queue.limits.remove('queue', 'partner')
  const after = await metrics.expose({ openStreams: 0, connections: 0 })

  expect(before).toMatch(/sluice_limit_rate_per_second\{queue="mail",scope="queue",limit="partner"\} 9\.5/)
  expect(before).toContain('sluice_limit_remaining_permits{queue="mail",scope="low",limit="low"} 3')
  expect(after).not.toContain('partner')
})

it('measure requests by their route', async () => {
  metrics.observeRequest({ method: 'GET', route: '/v1/queues/:queue', status: 200, seconds: 0.02 })

  expect(await metrics.expose({ openStreams: 0, connections: 0 })).toContain(
    'sluice_http_request_duration_seconds_bucket{le="0.025",method="GET",route="/v1/queues/:queue",status="200"} 1',
  )
})

it('count as lag of the event loop only what is beyond the time between two looks at it', async () => {
  await metrics.expose({ openStreams: 0, connections: 0 })
  await sleep(500) // Looks are taken while time passes: there is no event to wait for.
  const text = await metrics.expose({ openStreams: 0, connections: 0 })

  const [, median] = /sluice_process_event_loop_lag_seconds\{quantile="0.5"\} (\S+)/.exec(text) ?? []
  expect(Number(median)).toBeLessThan(0.01)
})
