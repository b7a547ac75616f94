import { afterEach, describe, expect, it } from 'vitest'
import { httpRequest } from '../../src/bulk/http-request/http-request.ts'
import type { Queue } from '../../src/index.ts'
import { BudgetUpstream } from '../support/budget-upstream.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

/** So long that no test meets its end. */
const YEARS_MS = 20 * 366 * 86_400_000

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function budget(...options: Parameters<typeof BudgetUpstream.start>): Promise<BudgetUpstream> {
  const upstream = await BudgetUpstream.start(...options)
  ends.push(() => upstream.stop())
  return upstream
}

function performCalls(queue: Queue): void {
  const handler = httpRequest({ allowHosts: ['127.0.0.1:*'], allowPrivate: ['127.0.0.1'] })
  queue.process('http.request', handler, { concurrency: 10 })
  ends.push(() => handler.close())
}

function submitCalls(queue: Queue, url: string, count: number) {
  const jobs = Array.from({ length: count }, () => ({ type: 'http.request', payload: { url } }))
  return queue.submit({ tenant: 'a', jobs })
}

const isAtRest = async (queue: Queue) => {
  const status = await queue.limits.status('queue')
  return status?.remaining === 0 && status.used === 0
}

describe('a quota', () => {
  it('asks with one call, then keeps the upstream from counting below the threshold', async () => {
    const asked = new Countdown(1)
    const answer = withResolvers<void>()
    const answering = () => {
      asked.tick()
      return answer.promise
    }
    const upstream = await budget({ '': 50 }, { windowMs: YEARS_MS, answering })
    const limits = { queue: { kind: 'quota', threshold: 5 } } as const
    const [queue, other] = [engine.queue({ limits }), engine.queue({ limits })]
    await submitCalls(queue, upstream.url, 100)

    performCalls(queue)
    await asked.reached
    const whileAsking = await other.claim(10)
    const callsBefore = upstream.total
    answer.resolve()
    await until(() => isAtRest(queue))

    expect(whileAsking).toEqual([])
    expect(callsBefore).toBe(1)
    expect(upstream.leastLeft.get('')).toBeGreaterThanOrEqual(5)
    // Answers that overtake each other leave something over: at most what was in flight.
    expect(upstream.total).toBeGreaterThanOrEqual(35)
    expect(upstream.refused).toBe(0)
    expect(await queue.counts()).toMatchObject({ succeeded: upstream.total, running: 0, throttled: 0 })
    expect(await queue.limits.status('queue')).toMatchObject({ kind: 'quota', limit: 50, remaining: 0 })
  })

  it('goes on when the upstream starts over, and never uses up a window', async () => {
    const upstream = await budget({ '': 20 }, { windowMs: 2_000 })
    const queue = engine.queue({ limits: { queue: { kind: 'quota', threshold: 2 } } })
    await submitCalls(queue, upstream.url, 30)

    performCalls(queue)
    await until(async () => (await queue.counts()).succeeded === 30)

    expect(upstream.leastLeft.get('')).toBeGreaterThanOrEqual(2)
    expect(upstream.refused).toBe(0)
    expect(upstream.total).toBe(30)
  })
})

describe('a pool of three tokens', () => {
  const pool = ['first', 'second', 'third']

  it('names in the grant whose turn it is, and spreads calls by what is left', async () => {
    const upstream = await budget({ first: 60, second: 30, third: 30 }, { windowMs: YEARS_MS })
    const queue = engine.queue({ limits: { queue: { kind: 'quota', threshold: 0, pool } } })
    const done = new Countdown(90)
    await queue.submit({ type: 'T', tenant: 'a', jobs: Array.from({ length: 90 }, () => ({})) })

    // Three hands: the first three jobs ask for each of the tokens.
    queue.process(
      'T',
      async (_job, context) => {
        const headers = { authorization: `Bearer ${context.grant.queue}` }
        const reply = await fetch(upstream.url, { headers })
        context.learn({ status: reply.status, headers: reply.headers })
        done.tick()
      },
      { concurrency: 3 },
    )
    await done.reached
    await until(async () => (await queue.counts()).succeeded === 90)

    const left = pool.map((token) => upstream.leastLeft.get(token) ?? Number.NaN)
    expect(upstream.refused).toBe(0)
    expect([...upstream.calls.keys()].sort()).toEqual(pool)
    expect(left.reduce((sum, each) => sum + each)).toBe(30)
    // Ten of each, give or take what three hands held when answers came in another order.
    for (const each of left) expect(Math.abs(each - 10)).toBeLessThanOrEqual(6)
  })

  it('serves a loop of one’s own: each claimed job says whose token it has, and teaches that one', async () => {
    const queue = engine.queue({ limits: { queue: { kind: 'quota', threshold: 0, pool } } })
    await queue.submit({ type: 'T', tenant: 'a', jobs: Array.from({ length: 20 }, () => ({})) })

    const probes = await queue.claim(20)
    for (const job of probes) {
      const remaining = job.grant.queue === 'second' ? '9' : '1'
      job.learn({ status: 200, headers: { 'X-RateLimit-Remaining': remaining, 'X-RateLimit-Reset': '3600' } })
      await job.succeed()
    }
    const next = await queue.claim(8)

    expect(probes.map(({ grant }) => grant.queue).sort()).toEqual(pool)
    expect(next.map(({ grant }) => grant.queue)).toEqual(Array.from({ length: 8 }, () => 'second'))
    expect(await queue.limits.status('queue')).toMatchObject({ used: 8, remaining: 3 })
    for (const job of next) await job.succeed()
  })
})

describe('code without a job', () => {
  it('reserves of a queue’s quota, tells it the answer, and the jobs that waited for that run at once', async () => {
    const queue = engine.queue({ limits: { queue: { kind: 'quota', threshold: 5 } } })
    const ran = new Countdown(3)
    await queue.submit({ tenant: 'a', jobs: [{ type: 'T' }, { type: 'T' }, { type: 'T' }] })
    const permit = await queue.limits.acquire('queue')
    queue.process('T', () => ran.tick())
    expect(await queue.limits.acquire('queue')).toMatchObject({ granted: false, remaining: null })

    const headers = { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '8', 'x-ratelimit-reset': '60' }
    const pushback = await queue.limits.learn('queue', { status: 200, headers }, { permit })
    await ran.reached

    expect(pushback).toBeUndefined()
    // The threshold is at most a tenth of the upstream's limit, so 8 − 3 − 5 are left.
    await until(async () => (await queue.limits.status('queue'))?.used === 0)
    expect(await queue.limits.acquire('queue')).toMatchObject({ granted: false, remaining: 0 })
  })

  it('is told what is wrong with a name, a level, a permit or an option that is none, and nothing is learnt', async () => {
    const queue = engine.queue({ limits: { queue: '5/s' } })
    const answer = { status: 429, headers: { 'retry-after': '60' } }

    await expect(queue.limits.learn('github', answer)).rejects.toThrow('limits.list()')
    await expect(queue.limits.learn('queue', answer, { level: 'urgent' as never })).rejects.toThrow('level')
    await expect(queue.limits.learn('queue', answer, { permit: 'high' as never })).rejects.toThrow('limits.acquire')
    await expect(queue.limits.learn('queue', answer, { permits: 1 } as never)).rejects.toThrow(
      'permits is not an option',
    )
    expect((await queue.limits.status('queue'))?.pushedBackUntil).toBeUndefined()

    expect(await queue.limits.learn('queue', answer)).toEqual({ retryAfterMs: 60_000 })
    expect((await queue.limits.status('queue'))?.pushedBackUntil).toBeGreaterThan(Date.now())
  })
})
