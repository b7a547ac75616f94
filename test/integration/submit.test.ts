import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { InvalidJobError, InvalidOptionsError, QueueFullError } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('a stream', () => {
  it('of 50,000 jobs from an async iterable is stored whole, all tenants mixed', async () => {
    const queue = engine.queue()
    async function* jobs() {
      for (let index = 0; index < 50_000; index++) {
        if (index % 10_000 === 0) await pause(1)
        yield { payload: index, tenant: `t${index % 97}` }
      }
    }

    const summary = await queue.submit({ type: 'T', jobs: jobs() })

    expect(summary).toEqual({ accepted: 50_000, duplicates: 0 })
    expect(await queue.counts()).toMatchObject({ waiting: 50_000, submitted: 50_000 })
    expect(await queue.tenant('t0').view()).toMatchObject({ waiting: Math.ceil(50_000 / 97) })
  })

  it('is run while it is still being produced', async () => {
    const queue = engine.queue()
    const first = new Countdown(1)
    queue.process('T', () => first.tick())
    async function* jobs() {
      yield { payload: 1 }
      await first.reached
      yield { payload: 2 }
    }

    expect(await queue.submit({ type: 'T', jobs: jobs() })).toEqual({ accepted: 2, duplicates: 0 })
    await until(async () => (await queue.counts()).succeeded === 2)
  })

  it('stops at a job that cannot be submitted and names it', async () => {
    const queue = engine.queue()
    function* jobs() {
      yield* payloads(5_000)
      yield { payload: 1n }
      throw new Error('nothing is read after it')
    }

    const error = await queue.submit({ type: 'T', jobs: jobs() }).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(InvalidJobError)
    expect(error).toMatchObject({ index: 5_000 })
    await queue.submit({ type: 'T', payload: 'after' })
    expect((await queue.counts()).waiting).toBeLessThanOrEqual(5_001)
  })

  it.each([
    [{ levle: 'high' }, 'levle is not an option; did you mean "level"?'],
    [{ payload: 1 }, 'payload belongs to each of the jobs'],
    [{ id: 'a' }, 'id belongs to each of the jobs'],
    [{ action: 'a' }, 'action needs a tenant'],
    [{ tenant: undefined }, 'tenant'],
  ])('has no defaults that would be left out: %o', async (defaults, problem) => {
    const queue = engine.queue()

    const submit = queue.submit({ type: 'T', ...defaults, jobs: payloads(2) } as never)

    await expect(submit).rejects.toThrow(InvalidOptionsError)
    await expect(submit).rejects.toThrow(problem)
    expect((await queue.counts()).submitted).toBe(0)
  })

  it('passes on what its producer throws', async () => {
    const queue = engine.queue()
    async function* jobs() {
      yield { payload: 1 }
      await pause(30)
      throw new RangeError('the producer’s own')
    }

    await expect(queue.submit({ type: 'T', jobs: jobs() })).rejects.toThrow(RangeError)
  })

  it.each([null, 5, {}])('must be an iterable, not %o', async (jobs) => {
    const queue = engine.queue()

    await expect(queue.submit({ type: 'T', jobs: jobs as never })).rejects.toMatchObject({
      code: 'SLUICE_INVALID_OPTIONS',
    })
  })

  it('may be empty', async () => {
    expect(await engine.queue().submit({ type: 'T', jobs: [] })).toEqual({ accepted: 0, duplicates: 0 })
  })
})

describe('an id of its own', () => {
  it('makes a job known: the same again is a no-op', async () => {
    const queue = engine.queue()

    const first = await queue.submit({ type: 'T', id: 'order-1' })
    const second = await queue.submit({ type: 'T', id: 'order-1' })
    const ofAnother = await queue.submit({ type: 'T', id: 'order-1', tenant: 'b' })

    expect([first, second, ofAnother].map(({ isNew }) => isNew)).toEqual([true, false, true])
    expect(first.id).toBe('order-1')
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
  })

  it('is known after the job has ended', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', id: 'order-1' })
    await drain(queue, () => '')

    expect(await queue.submit({ type: 'T', id: 'order-1' })).toMatchObject({ isNew: false })
  })

  it('is taken once when many submit it at the same time, also from several processes', async () => {
    const queues = [engine.queue(), engine.queue(), engine.queue()]
    const ids = Array.from({ length: 300 }, (_, index) => ({ id: `order-${index}`, payload: index }))

    const summaries = await Promise.all(
      queues.flatMap((queue) => [1, 2].map(() => queue.submit({ type: 'T', jobs: ids }))),
    )

    const total = summaries.reduce(
      (sum, { accepted, duplicates }) => [sum[0] + accepted, sum[1] + duplicates] as [number, number],
      [0, 0] as [number, number],
    )
    expect(total).toEqual([300, 1_500])
    expect(await queues[0]?.counts()).toMatchObject({ waiting: 300 })
  })

  it('counts once within one stream', async () => {
    const jobs = ['a', 'b', 'a', 'c', 'b'].map((id) => ({ id }))

    expect(await engine.queue().submit({ type: 'T', jobs })).toEqual({ accepted: 3, duplicates: 2 })
  })

  it('holds for delayed jobs too', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', id: 'order-1', delayMs: 60_000 })

    expect(await queue.submit({ type: 'T', id: 'order-1' })).toMatchObject({ isNew: false })
    expect(await queue.job('order-1')).toMatchObject({ state: 'delayed' })
  })
})

describe('a full queue', () => {
  it.each([
    ['queue', { maxPending: 10 }, undefined],
    ['tenant', { maxPendingPerTenant: 10 }, 'a'],
  ])('by the maximum of its %s is an error where the producer chose so', async (_, options, tenant) => {
    const queue = engine.queue({ ...options, whenFull: 'error' })
    await queue.submit({ type: 'T', tenant: 'a', jobs: payloads(10) })

    const error = await queue.submit({ type: 'T', tenant: 'a' }).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(QueueFullError)
    expect(error).toMatchObject({ queue: 'q', tenant, maxPending: 10 })
    expect(await queue.counts()).toMatchObject({ waiting: 10 })
  })

  it('of one tenant takes the jobs of another', async () => {
    const queue = engine.queue({ maxPendingPerTenant: 1, whenFull: 'error' })
    await queue.submit({ type: 'T', tenant: 'a' })

    expect(await queue.submit({ type: 'T', tenant: 'b' })).toMatchObject({ isNew: true })
  })

  it('lets the producer wait for room, and takes everything in order', async () => {
    const queue = engine.queue({ maxPending: 20 })
    const started: unknown[] = []
    const done = new Countdown(100)
    queue.process('T', (job) => {
      started.push(job.payload)
      done.tick()
    })

    expect(await queue.submit({ type: 'T', jobs: payloads(100) })).toEqual({ accepted: 100, duplicates: 0 })

    await done.reached
    expect(started).toEqual(payloads(100).map(({ payload }) => payload))
  })

  it('counts delayed jobs as pending', async () => {
    const queue = engine.queue({ maxPending: 1 })
    await queue.submit({ type: 'T', delayMs: 60_000 })

    await expect(queue.submit({ type: 'T' }, { whenFull: 'error' })).rejects.toThrow(QueueFullError)
  })

  it('lets go of a producer that waits when it is closed', async () => {
    const queue = engine.queue({ maxPending: 1 })
    await queue.submit({ type: 'T' })
    const waiting = queue.submit({ type: 'T' })
    waiting.catch(() => {})

    await queue.close()

    await expect(waiting).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})

describe('a delayed job', () => {
  it('starts at its instant, not before and hardly later', async () => {
    const queue = engine.queue()
    const late: number[] = []
    const done = new Countdown(40)
    queue.process<number>(
      'T',
      (job) => {
        late.push(Date.now() - job.payload)
        done.tick()
      },
      { concurrency: 20 },
    )

    for (let i = 0; i < 40; i++) {
      const runAt = Date.now() + 100 + i * 10
      await queue.submit({ type: 'T', payload: runAt, runAt })
    }
    await done.reached

    const sorted = late.sort((a, b) => a - b)
    // A clock read in this process and one read in Redis may differ by the millisecond they are cut to.
    expect(sorted[0]).toBeGreaterThanOrEqual(-1)
    // 20 ms are promised; a machine that runs other tests beside this one gets some more, and half of them may take longer.
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThan(60)
  })

  it('keeps its place before what is submitted to its lane after it is due', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', payload: 'delayed', delayMs: 30 })
    await pause(60) // Nobody looks at it when it is due: there is no event.
    await queue.submit({ type: 'T', payload: 'fresh' })

    expect(await drain(queue, (job) => String(job.payload))).toEqual(['delayed', 'fresh'])
  })
})

it('refuses bad input, changes nothing and goes on', async () => {
  const queue = engine.queue()
  const bad: unknown[] = [
    {},
    { type: '' },
    { type: 'T', id: '' },
    { type: 'T', payload: 1n },
    { type: 'T', delayMs: -1 },
  ]

  for (const job of bad) await expect(queue.submit(job as never)).rejects.toBeInstanceOf(InvalidJobError)

  expect(await queue.counts()).toMatchObject({ submitted: 0, waiting: 0 })
  await queue.submit({ type: 'T', tenant: '{x}:%!', lane: 'a:b', payload: '\u2028😀' })
  expect(await drain(queue, (job) => `${job.tenant} ${job.lane} ${job.payload}`)).toEqual(['{x}:%! a:b \u2028😀'])
})

it.each([null, undefined, 'text', 5, [{ type: 'T' }]])('refuses %o as a job', async (input) => {
  await expect(engine.queue().submit(input as never)).rejects.toThrow(InvalidJobError)
})

it('says which field was meant', async () => {
  await expect(engine.queue().submit({ type: 'T', levle: 'high' } as never)).rejects.toThrow('did you mean "level"?')
})
