import { describe, expect, it, vi } from 'vitest'
import { discard, PermanentError, ThrottledError, throttled } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('a job that throws', () => {
  it('is retried later each time, and a dead letter after its last retry', async () => {
    const queue = engine.queue({ maxRetries: 2 })
    const { id } = await queue.submit({ type: 'T', payload: { a: 1 } })
    const starts: number[] = []

    queue.process('T', (job) => {
      starts.push(performance.now())
      throw new TypeError(`attempt ${job.attempt}`)
    })
    await until(async () => (await queue.counts()).failed === 1)

    const [first = 0, second = 0, third = 0] = starts
    expect(starts).toHaveLength(3)
    expect(second - first).toBeGreaterThan(700)
    expect(third - second).toBeGreaterThan(1_450)
    expect(await queue.job(id)).toMatchObject({
      state: 'failed',
      reason: 'failed',
      attempts: 3,
      error: { name: 'TypeError', message: 'attempt 3' },
    })
  })

  it.each([
    ['the job', { maxRetries: 5 }, { maxRetries: 5 }, { maxRetries: 0 }],
    ['its processor', { maxRetries: 5 }, { maxRetries: 0 }, {}],
    ['the queue', { maxRetries: 0 }, {}, {}],
  ])('is tried as often as %s says', async (_, ofQueue, ofType, ofJob) => {
    const queue = engine.queue(ofQueue)
    await queue.submit({ type: 'T', ...ofJob })
    let runs = 0

    queue.process(
      'T',
      () => {
        runs += 1
        throw new Error('no')
      },
      ofType,
    )
    await until(async () => (await queue.counts()).failed === 1)

    expect(runs).toBe(1)
  })

  it.each([undefined, null, 'text', Object.create(null)])('may throw anything, also %o', async (thrown) => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T' })

    queue.process('T', () => {
      throw thrown
    })

    await until(async () => (await queue.counts()).failed === 1)
  })

  it('does not stop the others', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T', jobs: payloads(50) })
    const done = new Countdown(50)

    queue.process('T', async (job) => {
      done.tick()
      if (job.payload % 2 === 0) throw new Error('even')
    })
    await done.reached

    await until(async () => (await queue.counts()).running === 0)
    expect(await queue.counts()).toMatchObject({ succeeded: 25, failed: 25 })
  })
})

describe('an error with separators of lines that JSON leaves as they are', () => {
  const message = 'the upstream said: a\u2028b\u2029c'

  it('is carried through retries, views and dead letters', async () => {
    const queue = engine.queue({ maxRetries: 1 })
    const { id } = await queue.submit({ type: 'T' })

    queue.process('T', () => {
      throw new Error(message)
    })
    await until(async () => (await queue.counts()).failed === 1)

    expect(await queue.job(id)).toMatchObject({ attempts: 2, error: { message } })
    expect(await queue.deadLetters.list()).toMatchObject({ total: 1, letters: [{ key: id, error: { message } }] })
  })
})

describe('a job that will not succeed', () => {
  it.each([
    ['answers discard', () => discard('gone')],
    [
      'throws a PermanentError',
      () => {
        throw new PermanentError('gone')
      },
    ],
  ])('and %s is a dead letter at once', async (_, handler) => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })

    queue.process('T', handler)
    await until(async () => (await queue.counts()).failed === 1)

    expect(await queue.job(id)).toMatchObject({
      state: 'failed',
      reason: 'discarded',
      attempts: 1,
      error: { message: 'gone' },
    })
  })
})

describe('a job whose upstream pushes back', () => {
  const noTimes = [Number.POSITIVE_INFINITY, Number.NaN, -1, 1e300]

  it.each([
    ['answers throttled', (retryAfterMs: number) => throttled({ retryAfterMs })],
    [
      'throws a ThrottledError',
      (retryAfterMs: number) => {
        throw new ThrottledError({ retryAfterMs })
      },
    ],
  ])('and that %s comes again when it was told to, without costing a retry', async (_, pushBack) => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T' })
    const starts: number[] = []

    queue.process('T', (job) => {
      starts.push(performance.now())
      expect(job.attempt).toBe(1)
      return starts.length < 3 ? pushBack(150) : undefined
    })
    await until(async () => (await queue.counts()).succeeded === 1)

    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeGreaterThan(145)
    expect(await queue.counts()).toMatchObject({ throttled: 2, failed: 0 })
  })

  it.each(noTimes)('for %d ms does not keep the others from being finished', async (retryAfterMs) => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'PUSHED' })
    await queue.submit({ type: 'THROWS' })
    await queue.submit({ type: 'T', jobs: payloads(5) })

    queue.process('PUSHED', () => throttled({ retryAfterMs }))
    queue.process('THROWS', () => {
      throw new ThrottledError({ retryAfterMs })
    })
    queue.process('T', () => {})

    await until(async () => (await queue.counts()).succeeded === 5)
    expect((await queue.counts()).throttled).toBeGreaterThanOrEqual(2)
  })

  it('for too long is a dead letter', async () => {
    const queue = engine.queue({ maxThrottles: 2 })
    const { id } = await queue.submit({ type: 'T' })

    queue.process('T', () => throttled({ retryAfterMs: 10 }))
    await until(async () => (await queue.counts()).failed === 1)

    expect(await queue.job(id)).toMatchObject({ reason: 'throttled' })
  })

  it('says why it waits', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })

    queue.process('T', () => throttled({ retryAfterMs: 60_000 }))
    await until(async () => (await queue.counts()).throttled === 1)

    expect(await queue.job(id)).toMatchObject({ state: 'delayed', reason: 'upstream', attempts: 0 })
  })
})

describe('a job that runs too long', () => {
  it.each([
    ['the queue', { jobTimeoutMs: 60 }, {}, {}],
    ['its processor', {}, { timeoutMs: 60 }, {}],
    ['its own', {}, { timeoutMs: 60_000 }, { timeoutMs: 60 }],
  ])('by the time-out of %s has its signal aborted and counts as failed', async (_, ofQueue, ofType, ofJob) => {
    const queue = engine.queue({ maxRetries: 0, ...ofQueue })
    const { id } = await queue.submit({ type: 'T', ...ofJob })
    const aborted = withResolvers<unknown>()

    queue.process(
      'T',
      async (_job, { signal }) => {
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        aborted.resolve(signal.reason)
      },
      ofType,
    )

    expect(await aborted.promise).toMatchObject({ code: 'SLUICE_JOB_TIMEOUT', jobTimeoutMs: 60 })
    await until(async () => (await queue.counts()).failed === 1)
    expect(await queue.job(id)).toMatchObject({ error: { name: 'JobTimeoutError' } })
  })

  it('gives its hand back although its handler goes on', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T', payload: 'stuck', timeoutMs: 50 })
    await queue.submit({ type: 'T', payload: 'next' })
    const next = new Countdown(1)

    queue.process(
      'T',
      (job) => {
        if (job.payload === 'stuck') return new Promise(() => {})
        return next.tick()
      },
      { concurrency: 1 },
    )

    await next.reached
  })
})

describe('a job of a type that this worker does not know', () => {
  it('goes back for another, said once in the log, and does not block others', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'NEW' })
    await queue.submit({ type: 'NEW' })
    await queue.submit({ type: 'T', jobs: payloads(20) })
    const done = new Countdown(20)

    queue.process('T', () => done.tick())
    await done.reached
    await until(async () => (await queue.counts()).unknownType === 2)

    expect(await queue.job(id)).toMatchObject({ state: 'delayed', reason: 'unknown-type', attempts: 0 })
    expect((await queue.job(id))?.dueAt).toBeGreaterThan(Date.now() + 25_000)
    expect(engine.log.filter(({ event }) => event === 'worker.unknown-type')).toHaveLength(1)
  })

  it('is not buried by a worker whose clock is ahead', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'NEW' })
    const now = Date.now.bind(Date)
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + 7_200_000)
    try {
      queue.process('T', () => {})
      await until(async () => (await queue.counts()).unknownType === 1)

      // Due now instead of in half a minute.
      await engine.server.client().zadd(`${engine.prefix}:{q}:q:delayed`, 'XX', 1, id)
      await queue.submit({ type: 'T' })
      await until(async () => (await queue.counts()).unknownType === 2 || (await queue.counts()).failed === 1)
    } finally {
      clock.mockRestore()
    }

    expect(await queue.job(id)).toMatchObject({ state: 'delayed', reason: 'unknown-type' })
  })

  it('is a dead letter when nobody has known it for too long', async () => {
    const queue = engine.queue({ unknownTypeMs: 0 })
    const { id } = await queue.submit({ type: 'NEW' })
    queue.process('T', () => {})
    await until(async () => (await queue.counts()).unknownType === 1)
    await until(async () => (await queue.job(id))?.state === 'delayed')

    // Due now instead of in half a minute.
    await engine.server.client().zadd(`${engine.prefix}:{q}:q:delayed`, 'XX', 1, id)
    await queue.submit({ type: 'T' })

    await until(async () => (await queue.counts()).failed === 1)
    expect(await queue.job(id)).toMatchObject({ state: 'failed', reason: 'unknown-type' })
  })
})

it('runs middleware around every handler registered after it, outermost first', async () => {
  const queue = engine.queue()
  const events: unknown[] = []
  queue.use(async (job, context, next) => {
    events.push(['outer', job.type, typeof context.fence])
    try {
      return await next()
    } finally {
      events.push('outer end')
    }
  })
  queue.use(async (_job, _context, next) => {
    events.push('inner')
    const answer = await next()
    events.push(answer)
    return answer
  })
  await queue.submit({ type: 'T' })

  queue.process('T', () => discard('gone'))
  await until(async () => (await queue.counts()).failed === 1)

  expect(events).toEqual([['outer', 'T', 'string'], 'inner', discard('gone'), 'outer end'])
})
