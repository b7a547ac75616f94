import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { PermanentError } from '../../src/index.ts'
import { keyPrefix, queueKeys } from '../../src/store/keys.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { actionCounts } from './action-counts.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('cancelling', () => {
  it('ends what waits at once, and tells what runs', async () => {
    const queue = engine.queue()
    const started = withResolvers<void>()
    let aborted = 0
    queue.process(
      'T',
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted += 1
            reject(signal.reason as Error)
          })
          started.resolve()
        }),
      { concurrency: 4 },
    )
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(10_000) })
    await started.promise
    await until(async () => (await action.view())?.counts.running === 4)

    const view = await action.cancel()
    const summary = await action.finished()

    expect(view).toMatchObject({ state: 'CANCELED', counts: { waiting: 0, total: 10_000 } })
    expect(summary.counts).toEqual(actionCounts(10_000, { canceled: 10_000 }))
    expect(aborted).toBe(4)
    expect(await queue.counts()).toMatchObject({ waiting: 0, running: 0, canceled: 10_000 })
    expect(await action.cancel()).toMatchObject({ state: 'CANCELED' })
  })

  it('drops delayed jobs, and does not touch the other actions of the tenant', async () => {
    const queue = engine.queue()
    const client = engine.server.client()
    const delayed = () => client.zcard(`${keyPrefix(engine.prefix, queue.name)}delayed`)
    const kept = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(3) })
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      jobs: [...payloads(3), { delayMs: 300 }, { delayMs: 300 }],
    })

    expect((await action.cancel()).counts).toEqual(actionCounts(5, { canceled: 5 }))
    let runs = 0
    queue.process(
      'T',
      () => {
        runs += 1
      },
      { concurrency: 1 },
    )
    expect((await kept.finished()).state).toBe('COMPLETED')
    // They leave when they are due. Had they been put back in line, they would run before what comes after.
    await until(async () => (await delayed()) === 0)
    const after = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    await after.finished()

    expect(runs).toBe(3 + 1)
    expect(await queue.tenant('a').view()).toMatchObject({ waiting: 0, delayed: 0, running: 0 })
  })
})

describe('a failure policy', () => {
  it('failFast ends the action with the first job that failed', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      failFast: true,
      jobs: Array.from({ length: 5_000 }, (_, n) => ({ payload: n })),
    })

    queue.process('T', (job) => {
      if (job.payload === 5) throw new Error('five')
    })

    const { state, counts } = await action.finished()
    expect(state).toBe('FAILED')
    expect(counts).toMatchObject({ failed: 1, waiting: 0, running: 0 })
    expect(counts.canceled).toBeGreaterThan(4_000)
    expect(counts.succeeded + counts.failed + counts.canceled).toBe(5_000)
  })

  it.each([
    [0.1, 'FAILED'],
    [0.2, 'COMPLETED'],
  ])('maxFailureRatio %d with a fifth of the jobs failing ends it as %s', async (maxFailureRatio, state) => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', (job) => {
      if (job.payload % 5 === 0) throw new Error('five')
    })

    const action = await queue.submit({
      tenant: 'a',
      type: 'T',
      maxFailureRatio,
      jobs: Array.from({ length: 100 }, (_, n) => ({ payload: n })),
    })

    expect((await action.finished()).state).toBe(state)
  })

  it('ends the reading of jobs as well: nobody needs the others', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', () => {
      throw new Error('no')
    })
    async function* endless() {
      for (let n = 0; ; n++) {
        yield { payload: n }
        if (n % 100 === 0) await pause(5)
      }
    }

    const action = await queue.submit({ tenant: 'a', type: 'T', failFast: true, jobs: endless() })

    expect((await action.finished()).state).toBe('FAILED')
  })
})

describe('what failed', () => {
  it('runs again as an action of its own', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    let isBroken = true
    queue.process('T', (job) => {
      if (isBroken && job.payload % 2 === 0) throw new Error('even')
    })
    const action = await queue.submit({
      tenant: 'a',
      action: 'x',
      type: 'T',
      jobs: Array.from({ length: 10 }, (_, n) => ({ payload: n })),
    })
    await action.finished()
    isBroken = false

    const retried = await action.retryFailed()

    expect(retried.id).toBe('q:a:x.retry-1')
    expect((await retried.finished()).counts).toEqual(actionCounts(5, { succeeded: 5 }))
    expect((await action.view())?.counts).toEqual(actionCounts(10, { succeeded: 5, failed: 5 }))
    expect((await queue.deadLetters.list()).total).toBe(0)
  })

  it('costs what they cost, may be retried as often, and waits for nothing that is over', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    const jobs = [{ payload: 1, cost: 7, maxRetries: 2, timeoutMs: 5_000, runAt: Date.now() + 86_400_000 }]
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs })
    await queue.runDelayed({})
    const [job] = await queue.claim(1)
    await job?.fail(new PermanentError('broken'))

    const retried = await action.retryFailed()

    const [again] = await queue.claim(1)
    expect(again).toMatchObject({ action: 'x.retry-1', payload: 1, cost: 7 })
    await again?.fail(new Error('broken'))
    expect((await retried.view())?.counts).toMatchObject({ delayed: 1, failed: 0 })
  })

  it('leaves a letter that cannot be read where it is', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(2) })
    for (const job of await queue.claim(2)) await job.fail(new PermanentError('broken'))
    const [first] = (await queue.deadLetters.list()).letters
    const key = queueKeys(engine.prefix, 'q', '').deadJobs
    await engine.server.client().hset(key, first?.key ?? '', '1,failed\nnonsense')

    const retried = await action.retryFailed()

    expect((await retried.view())?.counts.total).toBe(1)
    expect((await queue.deadLetters.list()).letters).toMatchObject([{ key: first?.key, type: '' }])
  })

  it('while its action still runs leaves no other job behind', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    let isBroken = true
    queue.process('T', () => {
      if (isBroken) throw new Error('broken')
    })
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: payloads(1_200) })
    await until(async () => (await action.view())?.counts.failed === 1_200)

    const [retried] = await Promise.all([action.retryFailed(), action.submit(payloads(300))])
    await until(async () => (await action.view())?.counts.failed === 1_500)
    isBroken = false
    const again = await action.retryFailed()

    const counts = [(await retried.finished()).counts.total, (await again.finished()).counts.total]
    expect(counts[0]).toBeGreaterThanOrEqual(1_200)
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(1_500)
    await action.seal()
  })
})
