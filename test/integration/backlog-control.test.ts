import { describe, expect, it } from 'vitest'
import { PermanentError, type Queue } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

async function bury(queue: Queue, count: number, tenant = 'a'): Promise<void> {
  const jobs = Array.from({ length: count }, (_, payload) => ({ type: 'T', tenant, payload, maxRetries: 0 }))
  await queue.submit({ jobs })
  for (const job of await queue.claim(count)) await job.fail(new Error(`no ${String(job.payload)}`))
}

describe('delayed jobs', () => {
  it('run now: one by its id, and all that fit', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T', tenant: 'a', payload: 1, delayMs: 60_000 })
    const later = (tenant: string, payload: number) => ({ type: 'T', tenant, payload, delayMs: 60_000 })
    await queue.submit({ jobs: [later('a', 2), later('b', 3), later('b', 4)] })

    expect(await queue.runNow(id)).toBe('due')
    expect(await queue.runDelayed({ tenant: 'b', reason: 'scheduled' })).toEqual({ looked: 4, due: 2 })

    expect((await drain(queue, (job) => String(job.payload))).sort()).toEqual(['1', '3', '4'])
    expect(await queue.runNow('never', { tenant: 'a' })).toBe('unknown')
    expect(await queue.runDelayed({})).toEqual({ looked: 1, due: 1 })
  })

  it('are looked through in steps that a signal can end', async () => {
    const queue = engine.queue()

    expect(await queue.runDelayed({}, { signal: AbortSignal.abort() })).toEqual({ looked: 0, due: 0, cursor: '0' })
    await expect(queue.runDelayed({ reason: 'limit' as never })).rejects.toThrow('reason')
  })
})

describe('parked tenants', () => {
  it('come back when they are unparked, and their limits are asked again', async () => {
    const queue = engine.queue({ limits: { tenant: { kind: 'bucket', limit: 1, windowMs: 60_000 } } })
    for (const tenant of ['a', 'b']) await queue.submit({ jobs: [1, 2].map(() => ({ type: 'T', tenant })) })
    await queue.claim(2)

    await queue.tenant('a').unpark()
    expect((await queue.tenant('a').view()).state).toBe('ready')
    expect(await queue.unpark()).toBe(1)

    expect(await queue.claim(2)).toEqual([])
    expect((await queue.tenant('a').view()).state).toBe('parked')
  })
})

describe('dead letters by filter', () => {
  it('are counted, retried and discarded', async () => {
    const queue = engine.queue()
    await bury(queue, 3, 'a')
    await bury(queue, 2, 'b')

    expect(await queue.deadLetters.count({ tenant: 'a' })).toBe(3)
    expect(await queue.deadLetters.count({ error: 'no 1' })).toBe(2)
    const retried = await queue.deadLetters.retryAll({ tenant: 'a', error: 'no 2' }).finished
    const discarded = await queue.deadLetters.discardAll({ tenant: 'b' }).finished

    expect(retried).toMatchObject({ taken: 1, cursor: undefined })
    expect(discarded).toMatchObject({ taken: 2, left: 2 })
    expect(await drain(queue, (job) => String(job.payload))).toEqual(['2'])
    await queue.deadLetters.discardAll({ all: true }).finished
  })

  it('are taken at the rate that is asked for, and not faster', async () => {
    const queue = engine.queue()
    await bury(queue, 20)
    const startedAt = performance.now()

    const { taken } = await queue.deadLetters.retryAll({ tenant: 'a' }, { rate: '40/s' }).finished

    expect(taken).toBe(20)
    // The time itself is the matter: the first at once, nineteen more at forty a second.
    expect(performance.now() - startedAt).toBeGreaterThan(450)
    await queue.runDelayed({})
  })

  it('can be left off and gone on with', async () => {
    const queue = engine.queue()
    await bury(queue, 6)

    const first = queue.deadLetters.discardAll({ tenant: 'a' }, { limit: 4 })
    const { cursor, taken } = await first.finished
    const rest = await queue.deadLetters.discardAll({ tenant: 'a' }, { cursor: cursor as string }).finished

    expect([taken, rest.taken, rest.cursor]).toEqual([4, 2, undefined])
  })

  it('are taken once each, though they die again before the end that is given', async () => {
    const queue = engine.queue()
    await bury(queue, 3)
    let runs = 0
    queue.process('T', () => {
      runs += 1
      throw new PermanentError('again')
    })

    const sweep = queue.deadLetters.retryAll({ until: Date.now() + 3_600_000 }, { rate: '20/s' })
    const { taken, cursor } = await sweep.finished
    await until(() => runs === 3)

    expect([taken, cursor]).toEqual([3, undefined])
  })

  it('can be gone on with whatever the end that is given, and refuse one that is no date', async () => {
    const queue = engine.queue()
    await bury(queue, 3)
    const filter = { until: 8.64e15 }

    const { cursor } = await queue.deadLetters.discardAll(filter, { limit: 2 }).finished
    const rest = await queue.deadLetters.discardAll(filter, { cursor: cursor as string }).finished

    expect(rest).toMatchObject({ taken: 1, left: 0, cursor: undefined })
    expect(() => queue.deadLetters.discardAll({ since: 1e16 })).toThrow('since')
    expect(() => queue.deadLetters.discardAll({ until: 1e16 })).toThrow('until')
  })

  it('can be aborted', async () => {
    const queue = engine.queue()
    await bury(queue, 50)

    const sweep = queue.deadLetters.retryAll({ tenant: 'a' }, { rate: '10/s' })
    await until(async () => sweep.progress.taken > 0)
    sweep.abort()
    const { taken } = await sweep.finished

    expect(taken).toBeLessThan(50)
    expect((await queue.deadLetters.list()).total).toBe(50 - taken)
  })

  it('can be aborted before the first step, and gone on with', async () => {
    const queue = engine.queue()
    await bury(queue, 3)
    const signal = AbortSignal.abort()

    const aborted = await queue.deadLetters.retryAll({ all: true, since: 1 }, { signal }).finished
    const counted = await queue.deadLetters.countAll({ all: true }, { signal }).finished
    const { cursor } = aborted
    const rest = await queue.deadLetters.discardAll({ all: true }, { cursor: cursor as string }).finished

    expect([aborted, counted]).toMatchObject([1, 2].map(() => ({ looked: 0, taken: 0, cursor: expect.any(String) })))
    expect([aborted.left, counted.left]).toEqual([undefined, undefined])
    expect(rest).toMatchObject({ taken: 3, left: 0, cursor: undefined })
  })

  it('are never all meant by accident', async () => {
    expect(() => engine.queue().deadLetters.discardAll({})).toThrow('{ all: true } means all')
  })

  it('run again with an edited payload, one at a time', async () => {
    const queue = engine.queue({ maxPayloadBytes: 100 })
    await bury(queue, 1)
    const [letter] = (await queue.deadLetters.list()).letters
    const key = letter?.key ?? ''

    const circular: { self?: unknown } = {}
    circular.self = circular
    await expect(queue.deadLetters.retry(key, { payload: 'x'.repeat(200) })).rejects.toThrow(
      'more than maxPayloadBytes (100)',
    )
    await expect(queue.deadLetters.retry(key, { payload: circular })).rejects.toThrow('cannot be written as JSON')
    expect(await queue.deadLetters.retry(key, { payload: { mended: ['\n'] } })).toBe(true)

    expect(await drain(queue, (job) => JSON.stringify(job.payload))).toEqual(['{"mended":["\\n"]}'])
  })
})

describe('draining', () => {
  it('waits until nothing waits, is delayed or runs', async () => {
    const queue = engine.queue()
    await queue.submit({ jobs: [1, 2, 3].map((payload) => ({ type: 'T', tenant: 'a', payload })) })
    let ended = 0
    queue.process('T', () => {
      ended += 1
    })

    await queue.drain()

    expect(ended).toBe(3)
    await queue.drain({ tenant: 'a' })
  })

  it('ends with its signal, and the work goes on', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T' })

    await expect(queue.drain({ signal: AbortSignal.timeout(20) })).rejects.toThrow('timeout')
  })
})
