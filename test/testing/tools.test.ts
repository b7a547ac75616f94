import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { discard, type Handler, type Job, throttled } from '../../src/index.ts'
import {
  finished,
  memoryUpstream,
  recordRuns,
  runHandler,
  startRedis,
  startSluice,
  type TestRedis,
  type TestSluice,
} from '../../src/testing/index.ts'

let server: TestRedis
let test: TestSluice

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  test = await startSluice({ redis: server })
})
afterEach(() => test.close())

describe('finished', () => {
  it('answers with what the handler returned, whether the job ends before or while it is waited for', async () => {
    const queue = test.sluice.queue('mail')
    queue.process('SEND', ({ payload }) => `sent ${payload}`)
    const { id } = await queue.submit({ type: 'SEND', payload: 1 })

    const end = await finished(queue, id)
    expect(['sent 1', undefined]).toContain(end.result)
    expect(end).toMatchObject({ state: 'succeeded', error: undefined })
    const later = await queue.submit({ type: 'SEND', payload: 2, delayMs: 60_000 })
    expect(await test.clock.runUntil(finished(queue, later.id))).toMatchObject({ state: 'succeeded', result: 'sent 2' })
  })

  it('waits for the last retry, and says why the job failed', async () => {
    const queue = test.sluice.queue('mail', { maxRetries: 2 })
    queue.process('SEND', ({ attempt }) => {
      throw new Error(`refused ${attempt} times`)
    })
    await queue.submit({ type: 'SEND', id: 'order-7', tenant: 'acme', payload: 1 })

    const end = await test.clock.runUntil(finished(queue, 'order-7', { tenant: 'acme' }))

    expect(end).toMatchObject({ state: 'failed', error: { message: 'refused 3 times' } })
  })

  it('hears of the end of a job that its caller claimed itself', async () => {
    const queue = test.sluice.queue('mail')
    const { id } = await queue.submit({ type: 'SEND', payload: 1 })
    const end = finished(queue, id)
    const [job] = await queue.claim(1)

    await job?.succeed('done')

    expect(await end).toMatchObject({ state: 'succeeded', result: 'done' })
  })

  it('says how the job stands when it was waited for too long', async () => {
    const queue = test.sluice.queue('mail')
    const { id } = await queue.submit({ type: 'SEND', payload: 1, delayMs: 1_000 })

    await expect(finished(queue, id, { timeoutMs: 50 })).rejects.toThrow(
      `The job "${id}", which is delayed until 2026-01-01T00:00:01.000Z (scheduled), did not end within 50 ms.`,
    )
  })

  it('knows a job that was canceled', async () => {
    const queue = test.sluice.queue('mail')
    const { id } = await queue.submit({ type: 'SEND', payload: 1 })
    await queue.cancel(id)

    expect(await finished(queue, id)).toMatchObject({ state: 'canceled' })
  })

  it('does not wait for a job that there is not', async () => {
    const queue = test.sluice.queue('mail')
    await queue.submit({ type: 'SEND', payload: 1 })

    await expect(finished(queue, 'order-8')).rejects.toThrow('There is no job "order-8" in queue "mail"')
  })
})

describe('recorded runs', () => {
  it('say how each run ended and when the job comes again', async () => {
    const queue = test.sluice.queue('mail', { maxRetries: 1 })
    const recorder = recordRuns(queue)
    const ends: Record<string, (job: Job<number>) => unknown> = {
      FINE: ({ payload }) => payload + 1,
      BUSY: () => throttled({ retryAfterMs: 7_000 }),
      GONE: () => discard('no such address'),
      BAD: () => {
        throw new Error('refused')
      },
    }
    for (const [type, handler] of Object.entries(ends)) queue.process(type, handler)
    await queue.submit({ jobs: Object.keys(ends).map((type) => ({ type, payload: 1 })) })

    await test.clock.settle()

    const ran = Object.fromEntries(recorder.runs.map(({ job, ...run }) => [job.type, run]))
    expect(ran).toMatchObject({
      FINE: { outcome: 'succeeded', result: 2 },
      BUSY: { outcome: 'throttled', delayMs: 7_000 },
      GONE: { outcome: 'dead', error: new Error('no such address') },
      BAD: { outcome: 'retry', error: new Error('refused') },
    })
    const again = recorder.until(({ job }) => job.type === 'BAD' && job.attempt === 2)
    expect(await test.clock.runUntil(again)).toMatchObject({ outcome: 'dead' })
  })

  it('reject when what was waited for does not come', async () => {
    const recorder = recordRuns(test.sluice.queue('mail'))

    await expect(recorder.until(() => true, { timeoutMs: 20 })).rejects.toMatchObject({
      code: 'SLUICE_WAITED_TOO_LONG',
    })
  })

  it('are no more once it is stopped', async () => {
    const queue = test.sluice.queue('mail')
    const recorder = recordRuns(queue)
    recorder.stop()
    queue.process('SEND', () => {})
    await queue.submit({ type: 'SEND', payload: 1 })

    await test.clock.settle()

    expect(recorder.runs).toEqual([])
  })
})

describe('a handler by itself', () => {
  it.each<[string, Handler, object]>([
    ['what it returns', () => 7, { outcome: 'succeeded', result: 7 }],
    ['what it throws', () => Promise.reject(new Error('no')), { outcome: 'failed', error: new Error('no') }],
    ['that it was pushed back', () => throttled({ retryAfterMs: 9 }), { outcome: 'throttled', retryAfterMs: 9 }],
    ['that it gave up', () => discard('gone'), { outcome: 'discarded', error: new Error('gone') }],
  ])('says %s', async (_, handler, expected) => {
    expect(await runHandler(handler, { payload: null })).toMatchObject(expected)
  })

  it('gets a job with the values of the test, its payload as JSON has it', async () => {
    const seen: Job[] = []

    await runHandler((job) => void seen.push(job), { payload: { at: new Date(0) }, tenant: 'acme', attempt: 3 })

    expect(seen).toMatchObject([
      { tenant: 'acme', attempt: 3, payload: { at: '1970-01-01T00:00:00.000Z' }, level: 'normal', cost: 1 },
    ])
  })

  it('gets a context that records what it asks and learns', async () => {
    const upstream = memoryUpstream({ limit: 1, windowMs: 5_000, clock: test.clock })
    const handler: Handler = async (_, context) => {
      for (;;) {
        await context.admit()
        const answer = await upstream.fetch('https://api.example/mail')
        const pushback = context.learn(answer)
        if (pushback) return throttled(pushback)
      }
    }

    const run = await runHandler(handler, { payload: null }, { clock: test.clock })

    expect(run).toMatchObject({ outcome: 'throttled', retryAfterMs: 5_000, admitted: 2 })
    expect(run.answers.map(({ status }) => status)).toEqual([200, 429])
  })

  it('is canceled by the signal of the test, also where it waits for its limits', async () => {
    const stop = new AbortController()
    stop.abort(new Error('canceled'))

    const run = await runHandler((_, context) => context.admit(), { payload: null }, { signal: stop.signal })

    expect(run).toMatchObject({ outcome: 'failed', error: new Error('canceled'), admitted: 0 })
  })
})

describe('an upstream in memory', () => {
  const url = 'https://api.example/v1/mail?to=7'

  it('takes so many calls in any sliding window of its clock, and refuses the next', async () => {
    const upstream = memoryUpstream({ limit: 2, windowMs: 10_000, clock: test.clock })
    await upstream.fetch(url)
    await test.clock.advance(4_000)
    await upstream.fetch(url)

    const refused = await upstream.fetch(url)
    await test.clock.advance(10_000)
    const taken = await upstream.fetch(url)

    expect(refused.status).toBe(429)
    expect(Object.fromEntries(refused.headers)).toMatchObject({
      'retry-after': '10',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(Date.UTC(2026, 0, 1, 0, 0, 10) / 1_000),
    })
    expect(taken.status).toBe(200)
    expect(upstream.report()).toEqual({ calls: 4, violations: 1, busiest: 3, limit: 2, windowMs: 10_000 })
  })

  it('records what it was asked, and answers as the test says', async () => {
    const answer = async (request: Request) => Response.json({ echo: await request.json() }, { status: 201 })
    const upstream = memoryUpstream({ limit: 10, answer })

    const response = await upstream.fetch(url, { method: 'POST', body: '{"to":7}', headers: { 'x-id': '1' } })

    expect([response.status, await response.json()]).toEqual([201, { echo: { to: 7 } }])
    expect(response.headers.get('x-ratelimit-remaining')).toBe('9')
    expect(upstream.calls).toMatchObject([{ method: 'POST', url, body: '{"to":7}', status: 201 }])
    expect(upstream.calls[0]?.headers.get('x-id')).toBe('1')
    upstream.forget()
    expect(upstream.report()).toMatchObject({ calls: 0 })
  })

  it('takes its time by the clock, and no longer than the caller has patience', async () => {
    const upstream = memoryUpstream({ limit: 10, latencyMs: 300, clock: test.clock })
    const stop = new AbortController()
    const slow = upstream.fetch(url)
    const impatient = upstream.fetch(url, { signal: stop.signal })

    await test.clock.advance(299)
    expect(upstream.calls.map(({ status }) => status)).toEqual([undefined, undefined])
    stop.abort(new Error('enough'))
    await expect(impatient).rejects.toThrow('enough')
    await test.clock.advance(1)

    expect((await slow).status).toBe(200)
  })

  it('sees no call too many from a queue with its limit', async () => {
    const { sluice, clock } = test
    const upstream = memoryUpstream({ limit: 20, clock })
    const queue = sluice.queue('mail', { limits: { queue: '20/s' } })
    queue.process('SEND', () => upstream.fetch(url).then(() => {}))
    const action = await queue.submit({
      tenant: 'acme',
      type: 'SEND',
      jobs: Array.from({ length: 60 }, (_, payload) => ({ payload })),
    })

    await clock.runUntil(action.finished())

    expect(upstream.report()).toMatchObject({ calls: 60, violations: 0 })
    expect(clock.now()).toBeLessThan(3_300)
  })

  it('closes the limit of a queue that asks for more than it takes', async () => {
    const { sluice, clock } = test
    const upstream = memoryUpstream({ limit: 5, windowMs: 60_000, clock })
    const queue = sluice.queue('mail')
    queue.process('SEND', async (_, context) => {
      const pushback = context.learn(await upstream.fetch(url))
      return pushback ? throttled(pushback) : undefined
    })
    await queue.submit({ type: 'SEND', jobs: Array.from({ length: 8 }, (_, payload) => ({ payload })) })

    await clock.advance(125_000)

    expect(await queue.counts()).toMatchObject({ waiting: 0, delayed: 0, succeeded: 8 })
  })
})

it('a test Sluice has a Redis of its own, which is gone when it is closed', async () => {
  const own = await startSluice()
  const queue = own.sluice.queue('mail')
  queue.process('HANG', () => new Promise(() => {}))
  await queue.submit({ type: 'HANG', payload: 1 })
  await own.clock.settle()

  await own.close()

  expect(own.redis.isRunning).toBe(false)
})
