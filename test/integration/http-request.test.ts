import { afterEach, expect, it } from 'vitest'
import { httpRequest } from '../../src/bulk/http-request/http-request.ts'
import type { HttpRequestOptions } from '../../src/bulk/http-request/options.ts'
import type { Job, Queue, QueueOptions } from '../../src/index.ts'
import { busiestWindow } from '../support/arrivals.ts'
import { Countdown } from '../support/countdown.ts'
import { HttpUpstream } from '../support/http-upstream.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A queue that performs HTTP calls to loopback, and remembers what each returned. */
function queueOfCalls(options: QueueOptions = {}, more: Partial<HttpRequestOptions> = {}) {
  const queue = engine.queue(options)
  const handler = httpRequest({ allowHosts: ['127.0.0.1:*'], allowPrivate: ['127.0.0.1'], ...more })
  const results: [job: Job, result: unknown][] = []
  queue.use(async (job, _context, next) => {
    const result = await next()
    results.push([job, result])
    return result
  })
  queue.process('http.request', handler, { concurrency: 20 })
  ends.push(() => handler.close())
  return { queue, results }
}

const submit = (queue: Queue, payload: object) => queue.submit({ tenant: 'a', type: 'http.request', payload })

it('performs submitted calls, through a connection for each that runs at once', async () => {
  const done = new Countdown(200)
  const upstream = await HttpUpstream.start((request, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ path: request.url }))
    done.tick()
  })
  ends.push(() => upstream.stop())
  const { queue, results } = queueOfCalls()

  const jobs = Array.from({ length: 200 }, (_, index) => ({
    type: 'http.request',
    payload: { method: 'POST', url: upstream.url(`/${index}`), body: { index } },
  }))
  await queue.submit({ tenant: 'a', jobs })
  await done.reached
  await until(async () => (await queue.counts()).succeeded === 200)

  expect(results.map(([, result]) => result)).toEqual(
    expect.arrayContaining([expect.objectContaining({ status: 200, body: { path: '/199' } })]),
  )
  expect(new Set(upstream.arrivals.map(({ body }) => body)).size).toBe(200)
  expect(upstream.connections).toBeLessThanOrEqual(20)
})

it('keeps the promise of a bucket at the upstream, from the first cold connection on', async () => {
  const arrivals: number[] = []
  const done = new Countdown(100)
  const upstream = await HttpUpstream.start((_, response) => {
    arrivals.push(performance.now())
    response.end()
    done.tick()
  })
  ends.push(() => upstream.stop())
  // A name server that takes longer than the limit's jitter: what is resolved after the permit would arrive too late.
  const slowly = () => new Promise<string[]>((resolve) => setTimeout(() => resolve(['127.0.0.1']), 300))
  const { queue } = queueOfCalls({ limits: { queue: '50/s' } }, { allowHosts: ['*:*'], resolve: slowly })

  const jobs = Array.from({ length: 100 }, () => ({
    type: 'http.request',
    payload: { url: upstream.url('/', 'api.test') },
  }))
  await queue.submit({ tenant: 'a', jobs })
  await done.reached

  expect(busiestWindow(arrivals, 1_000).count).toBeLessThanOrEqual(50)
})

it('brings a job back that the upstream pushed back, without costing a retry', async () => {
  let calls = 0
  const upstream = await HttpUpstream.start((_, response) => {
    calls += 1
    if (calls === 1) response.writeHead(429, { 'retry-after': '1' }).end()
    else response.end('ok')
  })
  ends.push(() => upstream.stop())
  const { queue, results } = queueOfCalls({ maxRetries: 0 })

  await submit(queue, { url: upstream.url('/') })
  await until(async () => (await queue.counts()).succeeded === 1)

  expect(results).toMatchObject([
    [{ attempt: 1 }, { retryAfterMs: 1_000 }],
    [{ attempt: 1 }, { status: 200, body: 'ok' }],
  ])
})

it('tries again what may succeed another time', async () => {
  let calls = 0
  const upstream = await HttpUpstream.start((_, response) => {
    calls += 1
    response.writeHead(calls === 1 ? 502 : 200).end()
  })
  ends.push(() => upstream.stop())
  const { queue } = queueOfCalls()

  await submit(queue, { url: upstream.url('/') })
  await until(async () => (await queue.counts()).succeeded === 1)

  expect(calls).toBe(2)
})

it.each<[string, object, RegExp]>([
  ['an answer that a retry would not change', {}, /^127\.0\.0\.1:\d+ answered 410, not 2xx/],
  ['a host that is not allowed', { url: 'http://evil.test/' }, /^The host evil\.test is not in allowHosts/],
  ['a payload that cannot be sent', { method: 'TRACE' }, /^The payload cannot be sent: method must be/],
])('makes a dead letter at once of %s, with the reason', async (_, payload, reason) => {
  const upstream = await HttpUpstream.start((_, response) => response.writeHead(410).end())
  ends.push(() => upstream.stop())
  const { queue } = queueOfCalls()

  await queue.submit({ tenant: 'a', id: 'call', type: 'http.request', payload: { url: upstream.url('/'), ...payload } })
  await until(async () => (await queue.counts()).failed === 1)

  const job = await queue.job('call', { tenant: 'a' })
  expect(job?.error?.message).toMatch(reason)
})
