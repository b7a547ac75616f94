import type { RequestListener } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { httpRequest } from '../../src/bulk/http-request/http-request.ts'
import { type ProcessOptions, type Queue, throttled } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { HttpUpstream } from '../support/http-upstream.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(answer: RequestListener): Promise<HttpUpstream> {
  const upstream = await HttpUpstream.start(answer)
  ends.push(() => upstream.stop())
  return upstream
}

/** An upstream that refuses its first call with these headers, and says when each call came. */
async function refusingOnce(headers: Record<string, string>) {
  const arrivals: number[] = []
  const upstream = await start((_, response) => {
    arrivals.push(performance.now())
    if (arrivals.length === 1) response.writeHead(429, headers).end()
    else response.end()
  })
  return { url: upstream.url('/'), arrivals }
}

function performCalls(queue: Queue, options: ProcessOptions): void {
  const handler = httpRequest({ allowHosts: ['127.0.0.1:*'], allowPrivate: ['127.0.0.1'] })
  queue.process('http.request', handler, options)
  ends.push(() => handler.close())
}

function submitCalls(queue: Queue, url: string, { count, tenant = 'a' }: { count: number; tenant?: string }) {
  return queue.submit({
    tenant,
    type: 'http.request',
    jobs: Array.from({ length: count }, () => ({ payload: { url } })),
  })
}

describe('an upstream that answers 429', () => {
  const limits = { partner: '600/min', tenant: '1200/min' }

  it('with Retry-After closes the limit that the processor names, for everybody and so long', async () => {
    const { url, arrivals } = await refusingOnce({ 'retry-after': '2' })
    const queue = engine.queue({ limits, maxRetries: 0 })
    await submitCalls(queue, url, { count: 2 })
    await submitCalls(queue, url, { count: 2, tenant: 'b' })

    performCalls(queue, { concurrency: 1, upstream: 'partner' })
    await until(async () => (await queue.counts()).throttled === 1)
    const partner = await queue.limits.status('partner')
    const tenant = await queue.limits.status('tenant', 'a')
    await until(async () => (await queue.counts()).succeeded === 4)

    expect(partner?.pushedBackUntil).toBeGreaterThan(Date.now() - 20_000)
    expect(tenant?.pushedBackUntil).toBeUndefined()
    // Redis reads another clock: a hair less than two seconds may be two seconds there.
    expect((arrivals[1] as number) - (arrivals[0] as number)).toBeGreaterThan(1_990)
    expect(await queue.counts()).toMatchObject({ failed: 0, retried: 0 })
  })

  it('without Retry-After cuts the rate of that limit, and the others go on meanwhile', async () => {
    const { url, arrivals } = await refusingOnce({})
    const queue = engine.queue({ limits, maxRetries: 0 })
    const before = await queue.limits.status('partner')
    await submitCalls(queue, url, { count: 10 })

    performCalls(queue, { concurrency: 1, upstream: 'partner' })
    await until(async () => (await queue.counts()).throttled === 1)
    const cut = await queue.limits.status('partner')
    await until(async () => (await queue.counts()).succeeded === 10)

    expect(cut?.pushedBackUntil).toBeUndefined()
    // Cut to 0.7, and held below 0.95 for ten seconds.
    expect(cut?.effectivePerSecond).toBeLessThan((before?.effectivePerSecond as number) * 0.96)
    expect((await queue.limits.status('tenant', 'a'))?.effectivePerSecond).toBeCloseTo(20, 0)
    expect(arrivals).toHaveLength(11)
    expect(await queue.counts()).toMatchObject({ failed: 0, retried: 0 })
  })

  it('to one tenant closes that tenant’s limit, and the other’s jobs run', async () => {
    const others = new Countdown(30)
    const upstream = await start((request, response) => {
      if (request.url === '/refused') response.writeHead(429, { 'retry-after': '3600' }).end()
      else {
        response.end()
        others.tick()
      }
    })
    const queue = engine.queue({ limits: { queue: '1000/s', tenant: '500/s' } })
    await submitCalls(queue, upstream.url('/refused'), { count: 30, tenant: 'refused' })
    await submitCalls(queue, upstream.url('/'), { count: 30, tenant: 'served' })

    performCalls(queue, { concurrency: 5 })
    await others.reached
    await until(async () => (await queue.counts()).succeeded === 30)
    await until(async () => (await queue.counts()).running === 0)

    const pushedBackUntil = async (name: string, tenant?: string) =>
      (await queue.limits.status(name, tenant))?.pushedBackUntil
    const refused = upstream.arrivals.filter(({ path }) => path === '/refused').length
    expect(refused).toBeGreaterThan(0)
    expect(refused).toBeLessThan(30)
    expect(await pushedBackUntil('tenant', 'refused')).toBeGreaterThan(Date.now() + 3_000_000)
    expect(await pushedBackUntil('tenant', 'served')).toBeUndefined()
    expect(await pushedBackUntil('queue')).toBeUndefined()
    expect(await queue.counts()).toMatchObject({ failed: 0, retried: 0, throttled: refused })
  })

  it('for longer than maxCloseMs closes the limit no longer than that', async () => {
    const { url } = await refusingOnce({ 'retry-after': '86400' })
    const queue = engine.queue({ limits, maxCloseMs: 60_000 })
    await submitCalls(queue, url, { count: 1 })

    performCalls(queue, { concurrency: 1, upstream: 'partner' })
    await until(async () => (await queue.counts()).throttled === 1)

    const partner = await queue.limits.status('partner')
    expect(partner?.pushedBackUntil).toBeGreaterThan(Date.now())
    expect(partner?.pushedBackUntil).toBeLessThan(Date.now() + 61_000)
  })
})

describe('a handler of one’s own', () => {
  it('gives the answer of fetch to learn, and comes again when the upstream wants it', async () => {
    const { url, arrivals } = await refusingOnce({ 'Retry-After': '1' })
    const queue = engine.queue({ limits: { queue: '1000/s' }, maxRetries: 0 })
    const attempts: number[] = []
    await queue.submit({ type: 'T', tenant: 'a' })

    queue.process('T', async (job, context) => {
      attempts.push(job.attempt)
      const { status, headers } = await fetch(url)
      const pushback = context.learn({ status, headers })
      return pushback ? throttled(pushback) : 'done'
    })
    await until(async () => (await queue.counts()).throttled === 1)
    const status = await queue.limits.status('queue')
    await until(async () => (await queue.counts()).succeeded === 1)

    expect(status?.effectivePerSecond).toBeLessThan(960)
    expect(attempts).toEqual([1, 1])
    expect((arrivals[1] as number) - (arrivals[0] as number)).toBeGreaterThan(990)
  })

  it('slows the bucket of a tenant, not its budget for the day', async () => {
    const daily = { kind: 'window', limit: 10_000, windowMs: 86_400_000 } as const
    const queue = engine.queue({ limits: { tenant: { daily, calls: '50/s' } } })
    await queue.submit({ type: 'T', tenant: 'a' })

    queue.process('T', (_job, context) => {
      context.learn({ status: 429, headers: { 'retry-after': '3600' } })
    })
    await until(async () => (await queue.counts()).succeeded === 1)

    expect((await queue.limits.status('calls', 'a'))?.pushedBackUntil).toBeGreaterThan(Date.now() + 3_000_000)
    expect((await queue.limits.status('daily', 'a'))?.pushedBackUntil).toBeUndefined()
  })

  it('is refused for a limit that is nearly one of the queue’s, where this process gives its limits', () => {
    const named = engine.queue({ limits: { tenant: { calls: '50/s' } } })
    const silent = engine.queue()

    expect(() => named.process('T', () => {}, { upstream: 'call' })).toThrow(
      'upstream must be one of the queue\'s limits (calls), not "call"; did you mean "calls"?',
    )
    expect(() => silent.process('T', () => {}, { upstream: 'call' })).not.toThrow()
  })

  it('may be a limit that only one tenant has', async () => {
    const queue = engine.queue({ limits: { queue: { calls: '500/s' } } })
    await queue.tenant('gold').setLimits({ token: '100/s' })
    for (const tenant of ['gold', 'other']) await queue.submit({ type: 'T', tenant })

    queue.process(
      'T',
      (_job, context) => {
        context.learn({ status: 429, headers: { 'retry-after': '3600' } })
      },
      { upstream: 'token' },
    )
    await until(async () => (await queue.counts()).succeeded === 2)

    expect((await queue.limits.status('token', 'gold'))?.pushedBackUntil).toBeGreaterThan(Date.now() + 3_000_000)
    expect((await queue.limits.status('calls'))?.pushedBackUntil).toBeUndefined()
    expect(engine.log).toMatchObject([{ event: 'worker.unknown-upstream', upstream: 'token' }])
  })

  it('teaches the limits also when its job then succeeds', async () => {
    const queue = engine.queue({ limits: { queue: '1000/s' } })
    await queue.submit({ type: 'T', tenant: 'a' })

    queue.process('T', (_job, context) => {
      context.learn({ status: 429, headers: { 'retry-after': '3600' } })
    })
    await until(async () => (await queue.counts()).succeeded === 1)

    expect((await queue.limits.status('queue'))?.pushedBackUntil).toBeGreaterThan(Date.now() + 3_000_000)
  })

  it('in a loop of its own tells with the job’s end what it learned', async () => {
    const queue = engine.queue({ limits: { tenant: '1000/s' } })
    await queue.submit({ type: 'T', tenant: 'a', cost: 2 })
    const [job] = await queue.claim(1)

    const pushback = job?.learn({ status: 503, headers: new Headers({ 'Retry-After': '3600' }) })
    await job?.throttle(pushback)

    expect(job?.cost).toBe(2)
    expect(job?.grant).toEqual({})
    expect(pushback).toEqual({ retryAfterMs: 3_600_000 })
    expect((await queue.limits.status('tenant', 'a'))?.pushedBackUntil).toBeGreaterThan(Date.now() + 3_000_000)
    expect(await queue.counts()).toMatchObject({ throttled: 1, delayed: 1, retried: 0 })
  })
})
