import { describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/index.ts'
import { all, payloads, until, useEngine, withResolvers } from './engine.ts'

const engine = useEngine()

describe('results', () => {
  it('are kept in the order of the jobs and in the order of their ends', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    const release = withResolvers<void>()
    queue.process(
      'T',
      async (job) => {
        if (job.payload === 0) await release.promise
        if (job.payload === 1) throw new RangeError('one')
        return { n: job.payload }
      },
      { concurrency: 2 },
    )
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      keepResults: true,
      jobs: Array.from({ length: 10 }, (_, n) => ({ payload: n, id: `j${n}` })),
    })
    await until(async () => (await action.view())?.counts.succeeded === 8)
    release.resolve()
    await action.finished()

    const byJob = await all(action.results())
    const byFinish = await all(action.results({ order: 'finish' }))

    expect(byJob.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, n) => `j${n}`))
    expect(byFinish.at(-1)?.id).toBe('j0')
    expect(byFinish.map(({ id }) => id).sort()).toEqual(byJob.map(({ id }) => id).sort())
    expect(byJob[1]).toMatchObject({ state: 'failed', error: { name: 'RangeError', message: 'one' }, attempts: 1 })
    expect(byJob[2]).toMatchObject({ state: 'succeeded', result: { n: 2 } })
  })

  it('that are too large or cannot be written do not fail their job', async () => {
    const queue = engine.queue({ maxResultBytes: 500 })
    const circle: { self?: unknown } = {}
    circle.self = circle
    queue.process('T', (job) => (job.payload === 0 ? 'x'.repeat(501) : job.payload === 1 ? circle : undefined))

    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      keepResults: true,
      jobs: [0, 1, 2].map((payload) => ({ payload })),
    })
    await action.finished()

    const [large, unwritable, nothing] = (await all(action.results())) as [JobResult, JobResult, JobResult]
    expect(large).toMatchObject({ state: 'succeeded', resultBytes: 503 })
    expect(large).not.toHaveProperty('result')
    expect(unwritable.result).toEqual({ unwritable: expect.stringContaining('circular') })
    expect(nothing).not.toHaveProperty('result')
  })

  it('go with their action: the next of its name has only its own', async () => {
    const queue = engine.queue({ keepActionsMs: 1_000, keepResultsMs: 60_000 })
    queue.process('T', (job) => job.payload)
    const submit = (payload: string) =>
      queue.submit({ tenant: 'a', action: 'x', type: 'T', keepResults: true, jobs: [{ payload }] })
    const first = await submit('old')
    await first.finished()
    await until(async () => (await first.view()) === undefined)

    const second = await submit('new')
    await second.finished()

    expect((await all(second.results({ order: 'finish' }))).map(({ result }) => result)).toEqual(['new'])
  })

  it('make one of all of them where the type has an aggregate', async () => {
    const queue = engine.queue()
    await queue.aggregate('SUM', async (results) => {
      let sum = 0
      for await (const { result } of results) sum += result as number
      return { sum }
    })
    queue.process('SUM', (job) => job.payload, { concurrency: 20 })

    const action = await queue.submit({
      tenant: 'a',
      type: 'SUM',
      jobs: Array.from({ length: 1_000 }, (_, n) => ({ payload: n })),
    })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', aggregate: { sum: 499_500 } })
  })

  it('of an aggregate that fails are tried again, and in the end fail the action', async () => {
    const queue = engine.queue()
    const tries = { LATE: 0, NEVER: 0 }
    await queue.aggregate('LATE', () => {
      tries.LATE += 1
      if (tries.LATE < 3) throw new Error('not yet')
      return tries.LATE
    })
    await queue.aggregate('NEVER', () => {
      tries.NEVER += 1
      throw new Error('not ever')
    })
    queue.process('LATE', () => {})
    queue.process('NEVER', () => {})

    const late = await queue.submit({ tenant: 'a', type: 'LATE', jobs: payloads(1) })
    const never = await queue.submit({ tenant: 'a', type: 'NEVER', jobs: payloads(1) })

    expect(await late.finished()).toMatchObject({ state: 'COMPLETED', aggregate: 3 })
    expect(await never.finished()).toMatchObject({
      state: 'FAILED',
      aggregate: undefined,
      aggregateError: expect.stringContaining('not ever'),
    })
    expect(tries.NEVER).toBe(4)
  })

  it('are aggregated by another process when one closes and has no time left for it', async () => {
    const closing = engine.sluice()
    const first = closing.queue('q', { shutdownGraceMs: 100 })
    const begun = withResolvers<void>()
    await first.aggregate('T', () => {
      begun.resolve()
      return new Promise(() => {})
    })
    first.process('T', () => {})
    const action = await first.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })
    await begun.promise

    await closing.close()
    const second = engine.queue()
    await second.aggregate('T', () => 'made')
    second.process('T', () => {})

    // Sooner than the lease of the first would run out.
    const { state, aggregate } = await second.action(action.name, action).finished({ timeoutMs: 10_000 })
    expect({ state, aggregate }).toEqual({ state: 'COMPLETED', aggregate: 'made' })
  })
})

describe('an aggregate that nobody has any more', () => {
  it('fails its action, once a type may be unknown no longer', async () => {
    const before = engine.queue()
    await before.aggregate('T', () => 1)
    const action = await before.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    engine
      .sluice()
      .queue('q', { unknownTypeMs: 0 })
      .process('T', () => {})

    expect(await action.finished()).toMatchObject({
      state: 'FAILED',
      aggregateError: expect.stringContaining('no worker has an aggregate'),
    })
  })
})
