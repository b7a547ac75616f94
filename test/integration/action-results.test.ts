import { describe, expect, it } from 'vitest'
import type { JobResult } from '../../src/index.ts'
import { all } from '../support/all.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

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

  it('of jobs with a delay come after the others, in the order in which they were submitted', async () => {
    const queue = engine.queue()
    queue.process('T', () => 'done')
    const delays = [60, undefined, 30, undefined, 1]
    const jobs = delays.map((delayMs, n) => ({
      id: `j${n}`,
      payload: n,
      ...(delayMs === undefined ? {} : { delayMs }),
    }))
    const action = await queue.submit({ tenant: 'a', type: 'T', keepResults: true, jobs })

    await action.finished()

    expect((await all(action.results())).map(({ id }) => id)).toEqual(['j1', 'j3', 'j0', 'j2', 'j4'])
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
})
