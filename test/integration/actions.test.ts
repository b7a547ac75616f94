import { describe, expect, it } from 'vitest'
import type { Action } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { until } from '../support/until.ts'
import { actionCounts } from './action-counts.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

async function stateOf(action: Action) {
  return (await action.view())?.state
}

describe('an action', () => {
  it('runs to its end, and says what became of its jobs', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    queue.process('T', (job) => {
      if (job.payload.n % 10 === 3) throw new Error(`no ${job.payload.n % 2}`)
      return job.action
    })

    const action = await queue.submit({
      tenant: 'customer a',
      action: 'summer sale',
      type: 'T',
      jobs: payloads(100).map((_, n) => ({ payload: { n } })),
    })
    const summary = await action.finished()

    expect(action).toMatchObject({ id: 'q:customer%20a:summer%20sale', accepted: 100, duplicates: 0 })
    expect(summary).toMatchObject({
      id: action.id,
      state: 'COMPLETED',
      counts: actionCounts(100, { succeeded: 90, failed: 10 }),
      attempts: 100,
      throttles: 0,
      errors: [
        { message: 'no 1', count: 10, exampleId: expect.stringMatching(/^normal:@summer%20sale:\d+:customer%20a$/) },
      ],
      aggregate: undefined,
    })
    const { p50 = 0, p99 = 0 } = summary.durationMs ?? {}
    expect(p50).toBeLessThanOrEqual(p99)
    expect(await action.view()).toMatchObject({
      tenant: 'customer a',
      name: 'summer sale',
      type: 'T',
      isSealed: true,
      received: 100,
      etaMs: 0,
    })
  })

  it('does not complete before it is sealed, however fast its workers are', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, jobs: payloads(5) })
    await until(async () => (await action.view())?.counts.succeeded === 5)
    expect(await stateOf(action)).toBe('RUNNING')
    await action.submit(payloads(3))
    await until(async () => (await action.view())?.counts.succeeded === 8)
    expect(await stateOf(action)).toBe('RUNNING')

    await action.seal()

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', counts: actionCounts(8, { succeeded: 8 }) })
    await action.seal()
    expect(await stateOf(action)).toBe('COMPLETED')
  })

  it('without jobs completes when it is sealed', async () => {
    const queue = engine.queue()

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: [] })

    expect(await action.finished()).toMatchObject({
      state: 'COMPLETED',
      counts: actionCounts(0, {}),
      durationMs: undefined,
    })
  })

  it('takes jobs of many producers', async () => {
    const queue = engine.queue()
    const other = engine.queue()
    queue.process('T', () => {})
    const action = await queue.submit({ tenant: 'a', action: 'shared', type: 'T', seal: false, jobs: [] })

    const producers = [queue, other, queue, other].map((each) =>
      each.action('shared', { tenant: 'a' }).submit(payloads(50)),
    )
    await Promise.all(producers)
    await action.seal()

    expect((await action.finished()).counts).toEqual(actionCounts(200, { succeeded: 200 }))
  })

  it('refuses jobs once it is sealed, and says so', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })

    await expect(action.submit(payloads(1))).rejects.toMatchObject({ code: 'SLUICE_ACTION_CLOSED', action: 'q:a:x' })
    await expect(queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })).rejects.toMatchObject({
      code: 'SLUICE_ACTION_CLOSED',
    })
    expect((await action.view())?.counts.total).toBe(1)
  })

  it('refuses jobs once it is cancelled, also if it never was sealed', async () => {
    const queue = engine.queue()
    const input = { tenant: 'a', action: 'x', type: 'T' }
    const action = await queue.submit({ ...input, seal: false, jobs: payloads(1) })
    await action.cancel()

    await expect(queue.submit({ ...input, jobs: payloads(1) })).rejects.toMatchObject({ code: 'SLUICE_ACTION_CLOSED' })
  })

  it('is another one for another tenant', async () => {
    const queue = engine.queue()

    await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: payloads(1) })
    await queue.submit({ tenant: 'b', action: 'x', type: 'T', jobs: payloads(2) })

    expect((await queue.action('x', { tenant: 'a' }).view())?.counts.total).toBe(1)
    expect((await queue.action('x', { tenant: 'b' }).view())?.counts.total).toBe(2)
  })

  it('takes turns with other actions of its tenant', async () => {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ tenant: 'a', action: 'long', type: 'T', jobs: payloads(500) })
    await queue.submit({ tenant: 'a', action: 'short', type: 'T', jobs: payloads(3) })

    const order: (string | undefined)[] = []
    queue.process('T', (job) => void order.push(job.action), { concurrency: 1 })
    await queue.action('short', { tenant: 'a' }).finished()

    expect(order.lastIndexOf('short')).toBeLessThan(20)
    await queue.action('long', { tenant: 'a' }).cancel()
  })

  it('refuses what cannot be, and names it', async () => {
    const queue = engine.queue()
    const submit = (input: object) => queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1), ...input } as never)

    await expect(submit({ maxFailureRatio: 2 })).rejects.toThrow('maxFailureRatio')
    await expect(submit({ action: '' })).rejects.toThrow('action')
    await expect(submit({ webhook: { url: 'ftp://x', secret: 'y' } })).rejects.toThrow(/webhook.url.*webhook.secret/s)
    await expect(submit({ jobs: [{ payload: 1, tenant: 'b' }] })).rejects.toThrow('tenant')
    await expect(submit({ jobs: [{ payload: 1, lane: 'x' }] })).rejects.toThrow('lane')
    await expect(submit({ sale: 1 })).rejects.toThrow('sale')
    await expect(submit({ action: 'none', jobs: 5 })).rejects.toThrow('jobs must be an iterable')
    expect(await queue.action('none', { tenant: 'a' }).view()).toBeUndefined()
    await expect(queue.action('none', { tenant: 'a' }).seal()).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_ACTION' })
    expect(await queue.action('none', { tenant: 'a' }).view()).toBeUndefined()
    expect((await queue.counts()).submitted).toBe(0)
  })
})

describe('an action that was begun before', () => {
  function* failing(count: number, after: number) {
    for (let n = 0; n < count; n++) {
      if (n === after) throw new Error('the producer died')
      yield { payload: n, id: `r-${n}` }
    }
  }

  it('goes on where its jobs have ids: known ones are skipped', async () => {
    const queue = engine.queue()
    const seen: number[] = []
    const input = { tenant: 'a', action: 'x', type: 'T' }
    await expect(queue.submit({ ...input, jobs: failing(5_000, 3_000) })).rejects.toThrow('the producer died')
    const begun = await queue.action('x', { tenant: 'a' }).view()
    expect(begun).toMatchObject({ state: 'CREATED', isSealed: false })
    expect(begun?.received).toBeGreaterThan(0)

    const action = await queue.submit({ ...input, jobs: failing(5_000, -1) })
    queue.process('T', (job) => void seen.push(job.payload), { concurrency: 50 })
    await action.finished()

    expect(action.duplicates).toBe(begun?.received)
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 5_000 }, (_, n) => n))
  })

  it('goes on after what was received where they have none', async () => {
    const queue = engine.queue()
    const seen: number[] = []
    const input = { tenant: 'a', action: 'x', type: 'T' }
    const numbers = function* (from: number, to: number) {
      for (let n = from; n < to; n++) yield { payload: n }
    }
    await queue.submit({ ...input, seal: false, jobs: numbers(0, 1_234) })

    const action = await queue.submit({ ...input, from: 'accepted', jobs: numbers(0, 2_000) })
    queue.process('T', (job) => void seen.push(job.payload), { concurrency: 50 })
    await action.finished()

    expect(action.accepted).toBe(2_000 - 1_234)
    expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 2_000 }, (_, n) => n))
    expect((await queue.submit({ ...input, from: 'accepted', jobs: numbers(0, 2_000) })).accepted).toBe(0)
  })

  it('is sealed by itself when nobody adds to it for sealTimeoutMs', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, sealTimeoutMs: 300, jobs: payloads(2) })

    expect(await action.finished({ timeoutMs: 20_000 })).toMatchObject({ state: 'COMPLETED' })
  })

  it('is sealed in time by a process that has nothing else to do', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})
    const client = engine.server.client()
    await until(async () => (await client.keys('*:idle')).length > 0)

    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, sealTimeoutMs: 300, jobs: [] })

    // Less than one of its long reads takes.
    expect(await action.finished({ timeoutMs: 4_000 })).toMatchObject({ state: 'COMPLETED' })
  })
})

describe('an action without a name of the caller’s', () => {
  it('ends with what it has when its producer fails: nobody could go on with it', async () => {
    const queue = engine.queue()
    queue.process('T', () => {})
    function* failing() {
      for (let n = 0; n < 2_500; n++) yield { payload: n }
      throw new Error('the producer died')
    }

    await expect(queue.submit({ tenant: 'a', type: 'T', jobs: failing() })).rejects.toThrow('the producer died')

    await until(async () => (await queue.actions()).actions[0]?.state === 'COMPLETED')
  })
})

describe('the list of actions', () => {
  it('comes newest first, in pages, of the queue or of a tenant', async () => {
    const queue = engine.queue()
    for (const name of ['one', 'two', 'three', 'four', 'five']) {
      await queue.submit({ tenant: name.length === 3 ? 'a' : 'b', action: name, type: 'T', jobs: [] })
    }

    const first = await queue.actions({ limit: 3 })
    const second = await queue.actions({ limit: 3, cursor: first.cursor as string })
    const ofTenant = await queue.actions({ tenant: 'a' })

    expect(first.actions.map(({ name }) => name)).toEqual(['five', 'four', 'three'])
    expect(second.actions.map(({ name }) => name)).toEqual(['two', 'one'])
    expect(second.cursor).toBeUndefined()
    expect(ofTenant.actions.map(({ name }) => name)).toEqual(['two', 'one'])
  })

  it('neither skips nor repeats actions that were made in the same microsecond', async () => {
    const queue = engine.queue()
    for (let n = 0; n < 9; n++) await queue.submit({ tenant: 'a', action: `x${n}`, type: 'T', jobs: [] })
    const start = keyPrefix(engine.prefix, queue.name)
    for (const [key, members] of [
      ['actions', (n: number) => `a:x${n}`],
      ['actions:a', (n: number) => `x${n}`],
    ] as const) {
      for (let n = 1; n < 8; n++) await engine.server.client().zadd(`${start}${key}`, 1_000, members(n))
    }

    for (const tenant of [{}, { tenant: 'a' }]) {
      const seen: string[] = []
      let cursor: string | undefined
      do {
        const page = await queue.actions({ ...tenant, limit: 2, ...(cursor === undefined ? {} : { cursor }) })
        seen.push(...page.actions.map(({ name }) => name))
        cursor = page.cursor
      } while (cursor !== undefined)

      expect(seen.toSorted()).toEqual(Array.from({ length: 9 }, (_, n) => `x${n}`))
    }
  })
})

describe('a submit', () => {
  async function* spoiled() {
    yield { payload: 1, color: 'red' } as never
  }

  it.each([
    ['a list', () => [{ color: 'red' } as never]],
    ['an iterable', () => new Set([{ color: 'red' } as never])],
    ['a stream', spoiled],
  ])('of %s whose first job cannot be leaves no action behind', async (_, jobs) => {
    const queue = engine.queue()

    await expect(queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: jobs() })).rejects.toThrow('unknown field')

    expect(await queue.action('x', { tenant: 'a' }).view()).toBeUndefined()
  })

  it('to an open action refuses what is no iterable, and options that cannot be', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', type: 'T', seal: false, jobs: [] })

    await expect(action.submit(7 as never)).rejects.toThrow('jobs must be an iterable or async iterable')
    await expect(action.submit([], { signal: 'now' as never })).rejects.toThrow('signal must be an AbortSignal')
    expect(await action.view()).toMatchObject({ received: 0 })
  })

  it('that waits for room ends when its signal comes, and keeps what was stored', async () => {
    const queue = engine.queue({ maxPending: 5 })
    const controller = new AbortController()

    const submitted = queue.submit(
      { tenant: 'a', action: 'x', type: 'T', jobs: payloads(20) },
      { signal: controller.signal },
    )
    await until(async () => (await queue.counts()).waiting === 5)
    controller.abort(new Error('nobody waits'))

    await expect(submitted).rejects.toThrow('nobody waits')
    expect(await queue.action('x', { tenant: 'a' }).view()).toMatchObject({ received: 5, isSealed: false })
  })
})
