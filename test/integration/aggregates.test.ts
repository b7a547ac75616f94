import { describe, expect, it } from 'vitest'
import { type JobResult, PermanentError, type QueueOptions } from '../../src/index.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

/** Ends when its signal is aborted, with the reason. */
function hangUntil(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
}

/** A process that only runs jobs. */
function runner(options: QueueOptions = {}): void {
  engine
    .sluice()
    .queue('q', options)
    .process('T', () => {})
}

describe('an aggregate', () => {
  it('makes one result of all of an action', async () => {
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

  it('that fails is tried again, and in the end fails the action', async () => {
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

  it.each([
    ['is too large', () => 'x'.repeat(101), 'has 103 bytes as JSON, more than maxBytes (100) allows'],
    ['is no JSON', () => 1n, 'is no JSON'],
    ['says that it is of no use to try again', () => Promise.reject(new PermanentError('hopeless')), 'hopeless'],
  ])('that %s fails the action at once', async (_, make, message) => {
    const queue = engine.queue()
    let tries = 0
    const counted = () => {
      tries += 1
      return make()
    }
    await queue.aggregate('T', counted, { maxBytes: 100 })
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    expect(await action.finished()).toMatchObject({ state: 'FAILED', aggregateError: expect.stringContaining(message) })
    expect(tries).toBe(1)
  })

  it('that takes too long gets its signal and no more results, and is tried again', async () => {
    const queue = engine.queue()
    const reasons: unknown[] = []
    const rest = withResolvers<unknown>()
    async function readOn(results: AsyncIterable<JobResult>, signal: AbortSignal) {
      const iterator = results[Symbol.asyncIterator]()
      await iterator.next()
      await hangUntil(signal).catch((reason: unknown) => reasons.push(reason))
      await iterator.next().then(rest.resolve, rest.resolve)
      // It does not heed the signal: nobody waits for it any longer.
      return new Promise(() => {})
    }
    await queue.aggregate(
      'T',
      (results, { signal }) => (reasons.length === 0 ? readOn(results, signal) : 'made at last'),
      { timeoutMs: 50 },
    )
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(3) })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', aggregate: 'made at last' })
    expect(reasons).toEqual([expect.objectContaining({ code: 'SLUICE_AGGREGATE_TIMEOUT', type: 'T', timeoutMs: 50 })])
    expect(await rest.promise).toBe(reasons[0])
  })

  it('gets its signal when its action is cancelled meanwhile', async () => {
    const queue = engine.queue({ leaseMs: 300 })
    const begun = withResolvers<void>()
    const ended = withResolvers<void>()
    await queue.aggregate('T', (_, { signal }) => {
      begun.resolve()
      return hangUntil(signal).finally(ended.resolve)
    })
    queue.process('T', () => {})
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    await begun.promise

    await action.cancel()

    await ended.promise
    expect(await action.finished()).toMatchObject({ state: 'CANCELED', aggregate: undefined })
  })

  it.each([
    ['a time-out', { timeoutMs: 0 }, 'timeoutMs'],
    ['a size', { maxBytes: 1 }, 'maxBytes'],
  ])('with %s that cannot be is refused', async (_, options, path) => {
    await expect(engine.queue().aggregate('T', () => 1, options)).rejects.toThrow(path)
  })
})

describe('aggregates that hang', () => {
  it('keep neither actions from being sealed, nor aggregates of other processes from being made', async () => {
    const hanging = engine.queue({ shutdownGraceMs: 100 })
    let begun = 0
    await hanging.aggregate('HANG', (_, { signal }) => {
      begun += 1
      return hangUntil(signal)
    })
    hanging.process('HANG', () => {})
    for (let n = 0; n < 6; n++) await hanging.submit({ tenant: `t${n}`, type: 'HANG', jobs: payloads(1) })
    await until(() => begun === 4)

    const sealed = await hanging.submit({
      tenant: 'a',
      type: 'HANG',
      seal: false,
      sealTimeoutMs: 1_000,
      jobs: [],
    })
    // Its claim says when the next thing is due.
    await hanging.submit({ tenant: 'a', type: 'HANG' })
    await until(async () => (await sealed.view())?.isSealed === true)
    const able = engine.queue()
    await able.aggregate('T', () => 'made')
    able.process('T', () => {})
    const made = await able.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    expect(await made.finished()).toMatchObject({ state: 'COMPLETED', aggregate: 'made' })
    expect(begun).toBe(4)
  })
})

describe('which process makes an aggregate', () => {
  it('is one that has it, also when it runs no jobs, as soon as another finds it due', async () => {
    const able = engine.queue()
    await able.aggregate('T', () => 'made')
    runner()

    const action = await able.submit({ tenant: 'a', type: 'T', jobs: payloads(5) })

    // The heartbeat by which it would find out for itself is later.
    expect(await action.finished({ timeoutMs: 5_000 })).toMatchObject({ state: 'COMPLETED', aggregate: 'made' })
  })

  it('is that one also for jobs that a loop of its own has run, and for an action sealed after them', async () => {
    const able = engine.queue()
    await able.aggregate('T', () => 'made')
    const claiming = engine.sluice().queue('q')

    const first = await claiming.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    for (const job of await claiming.claim(1)) await job.succeed()
    const second = await engine.sluice().queue('q').submit({ tenant: 'a', type: 'T', jobs: [] })

    expect(await first.finished({ timeoutMs: 5_000 })).toMatchObject({ state: 'COMPLETED', aggregate: 'made' })
    expect(await second.finished({ timeoutMs: 5_000 })).toMatchObject({ state: 'COMPLETED', aggregate: 'made' })
  })

  it('is another when one closes and has no time left for it', async () => {
    const closing = engine.sluice()
    const first = closing.queue('q', { shutdownGraceMs: 100 })
    const begun = withResolvers<AbortSignal>()
    await first.aggregate('T', (_, { signal }) => {
      begun.resolve(signal)
      return new Promise(() => {})
    })
    first.process('T', () => {})
    const action = await first.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })
    const signal = await begun.promise

    await closing.close()
    const second = engine.queue()
    await second.aggregate('T', () => 'made')

    // Sooner than the lease of the first would run out.
    const { state, aggregate } = await second.action(action.name, action).finished({ timeoutMs: 10_000 })
    expect({ state, aggregate }).toEqual({ state: 'COMPLETED', aggregate: 'made' })
    expect(signal.reason).toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('is none where nobody has it any more: the action fails, once a type may be unknown no longer', async () => {
    const gone = engine.sluice()
    const before = gone.queue('q')
    await before.aggregate('T', () => 1)
    const { name } = await before.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    await gone.close()

    runner({ unknownTypeMs: 0 })

    expect(await engine.queue().action(name, { tenant: 'a' }).finished()).toMatchObject({
      state: 'FAILED',
      aggregateError: expect.stringContaining('no worker has an aggregate'),
    })
  })
})
