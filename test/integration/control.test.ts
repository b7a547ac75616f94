import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Queue } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('cancelling', () => {
  it('a waiting job takes it away at once, and the others stay', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', payload: 1 })
    const { id } = await queue.submit({ type: 'T', payload: 2 })
    await queue.submit({ type: 'T', payload: 3 })

    expect(await queue.cancel(id)).toBe('canceled')

    expect(await queue.counts()).toMatchObject({ waiting: 2, canceled: 1 })
    expect(await queue.job(id)).toMatchObject({ state: 'canceled' })
    expect(await drain(queue, (job) => String(job.payload))).toEqual(['1', '3'])
    expect(await queue.cancel(id)).toBe('canceled')
  })

  it('a delayed job takes it away at once', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T', delayMs: 60_000 })

    expect(await queue.cancel(id)).toBe('canceled')

    expect(await queue.counts()).toMatchObject({ delayed: 0, canceled: 1 })
    expect(await queue.job(id)).toMatchObject({ state: 'canceled' })
  })

  it('a running job aborts its signal, and it ends as canceled', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })
    const running = new Countdown(1)
    const aborted = withResolvers<unknown>()
    queue.process('T', async (_job, { signal }) => {
      running.tick()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      aborted.resolve(signal.reason)
      throw signal.reason
    })
    await running.reached

    expect(await queue.cancel(id)).toBe('canceling')

    expect(String(await aborted.promise)).toContain('cancel')
    await until(async () => (await queue.counts()).canceled === 1)
    expect(await queue.job(id)).toMatchObject({ state: 'canceled' })
    expect(await queue.counts()).toMatchObject({ running: 0, failed: 0, delayed: 0 })
  })

  it('a running job lets it succeed if it does', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })
    const running = new Countdown(1)
    const released = withResolvers<void>()
    queue.process('T', async () => {
      running.tick()
      await released.promise
    })
    await running.reached

    await queue.cancel(id)
    released.resolve()

    await until(async () => (await queue.counts()).succeeded === 1)
    expect(await queue.job(id)).toMatchObject({ state: 'succeeded' })
  })

  it('a job by the id it was given needs its tenant', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', tenant: 'a', id: 'order-1' })

    expect(await queue.cancel('order-1')).toBe('unknown')
    expect(await queue.cancel('order-1', { tenant: 'a' })).toBe('canceled')
  })

  it('a job that has ended changes nothing', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })
    await drain(queue, () => '')

    expect(await queue.cancel(id)).toBe('ended')
    expect(await queue.cancel('never-submitted')).toBe('unknown')
  })

  it('all waiting jobs of a lane leaves nothing behind', async () => {
    const queue = engine.queue()
    const ids: string[] = []
    for (let i = 0; i < 30; i++) ids.push((await queue.submit({ type: 'T', lane: 'x', payload: i })).id)
    for (const id of ids) await queue.cancel(id)

    expect(await queue.claim(10)).toEqual([])

    expect(await queue.counts()).toMatchObject({ waiting: 0, canceled: 30 })
    expect(await queue.tenant('default').view()).toMatchObject({ state: 'idle', waiting: 0 })
  })
})

describe('a job', () => {
  it('is known in every state of its life', async () => {
    const queue = engine.queue({ maxRetries: 1 })
    const { id } = await queue.submit({ type: 'T', payload: { a: [] }, level: 'high', lane: 'x y', tenant: 'a:b' })
    const states = [(await queue.job(id))?.state]
    const [claimed] = await queue.claim(1)
    states.push((await queue.job(id))?.state)
    await claimed?.fail(new Error('once'))
    const delayed = await queue.job(id)
    states.push(delayed?.state)
    await until(async () => {
      const [again] = await queue.claim(1)
      await again?.fail(new Error('twice'))
      return again !== undefined
    })
    const failed = await queue.job(id)
    states.push(failed?.state)

    expect(states).toEqual(['waiting', 'running', 'delayed', 'failed'])
    expect(delayed).toMatchObject({
      id,
      tenant: 'a:b',
      level: 'high',
      lane: 'x y',
      type: 'T',
      payload: { a: [] },
      attempts: 1,
      reason: 'retry',
      error: { name: 'Error', message: 'once' },
    })
    expect(delayed?.dueAt).toBeGreaterThan(Date.now() - 1_000)
    expect(failed).toMatchObject({ attempts: 2, reason: 'failed', error: { message: 'twice' } })
  })

  it('that has succeeded is known as such, by its place or by the id it was given', async () => {
    const queue = engine.queue()
    const { id } = await queue.submit({ type: 'T' })
    await queue.submit({ type: 'T', id: 'order-1', tenant: 'a' })
    await drain(queue, () => '')

    expect(await queue.job(id)).toMatchObject({ id, state: 'succeeded' })
    expect(await queue.job('order-1', { tenant: 'a' })).toMatchObject({ id: 'order-1', state: 'succeeded' })
  })

  it('that is scheduled says so', async () => {
    const queue = engine.queue()
    const runAt = new Date(Date.now() + 60_000)
    const { id } = await queue.submit({ type: 'T', runAt })

    expect(await queue.job(id)).toMatchObject({ state: 'delayed', reason: 'scheduled', dueAt: runAt.getTime() })
  })

  it('that nobody has submitted is not known', async () => {
    const queue = engine.queue()

    expect(await queue.job('order-1')).toBeUndefined()
    expect(await queue.job('normal:default:5:a')).toBeUndefined()

    await queue.submit({ type: 'T', tenant: 'a' })
    for (const job of await queue.claim(1)) await job.succeed()
    expect(await queue.job('normal:default:5:a')).toBeUndefined()
  })
})

describe('dead letters', () => {
  async function bury(count: number) {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T', jobs: payloads(count) })
    for (const job of await queue.claim(count)) await job.fail(new Error(`no ${job.payload}`))
    return queue
  }

  it('are listed newest first, page by page', async () => {
    const queue = await bury(5)

    const first = await queue.deadLetters.list({ count: 2 })
    const rest = await queue.deadLetters.list({ cursor: first.cursor })

    expect([first.total, rest.total]).toEqual([5, 5])
    expect([...first.letters, ...rest.letters].map((letter) => letter.payload)).toEqual([5, 4, 3, 2, 1])
    expect(first.letters[0]).toMatchObject({
      type: 'T',
      tenant: 'default',
      reason: 'failed',
      attempts: 1,
      error: { message: 'no 5' },
    })
    expect(Math.abs((first.letters[0]?.diedAt ?? 0) - Date.now())).toBeLessThan(10_000)
  })

  it('run again as if fresh when they are retried', async () => {
    const queue = await bury(2)
    const [letter] = (await queue.deadLetters.list()).letters
    const runs: string[] = []
    const done = new Countdown(1)
    queue.process('T', (job) => {
      runs.push(`${job.payload}.${job.attempt}`)
      done.tick()
    })

    expect(await queue.deadLetters.retry(letter?.key ?? '')).toBe(true)

    await done.reached
    await until(async () => (await queue.counts()).succeeded === 1)
    expect(runs).toEqual(['2.1'])
    expect((await queue.deadLetters.list()).total).toBe(1)
    expect(await queue.deadLetters.retry(letter?.key ?? '')).toBe(false)
  })

  it('are gone for good when they are discarded', async () => {
    const queue = await bury(1)
    const [letter] = (await queue.deadLetters.list()).letters

    expect(await queue.deadLetters.discard(letter?.key ?? '')).toBe(true)

    expect(await queue.deadLetters.list()).toEqual({ total: 0, letters: [] })
    expect(await queue.deadLetters.discard(letter?.key ?? '')).toBe(false)
    expect(await queue.counts()).toMatchObject({ failed: 1, deadLettersDiscarded: 1 })
  })

  it('of an ordered lane let the next job go on, and come back in line themselves', async () => {
    const queue = engine.queue({ maxRetries: 0 })
    await queue.submit({ type: 'T', lane: 'x', ordered: true, jobs: payloads(2) })
    const [first] = await queue.claim(5)
    await first?.fail(new Error('no'))
    const [letter] = (await queue.deadLetters.list()).letters
    await queue.deadLetters.retry(letter?.key ?? '')

    expect((await drain(queue, (job) => String(job.payload))).sort()).toEqual(['1', '2'])
  })
})

describe('pausing', () => {
  it('a queue starts nothing until it is resumed, and then at once', async () => {
    const queue = engine.queue()
    await queue.pause()
    await queue.submit({ type: 'T', jobs: payloads(20) })
    const done = new Countdown(20)
    let runs = 0
    queue.process('T', () => {
      runs += 1
      done.tick()
    })
    await pause(200)
    const before = runs

    await queue.resume()

    await done.reached
    expect(before).toBe(0)
  })

  it('a level leaves the others alone', async () => {
    const queue = engine.queue()
    await queue.pause({ level: 'high' })
    await queue.submit({ type: 'T', level: 'high', payload: 'high' })
    await queue.submit({ type: 'T', level: 'low', payload: 'low' })

    expect(await drain(queue, (job) => String(job.payload))).toEqual(['low'])
    await queue.resume({ level: 'high' })
    expect(await drain(queue, (job) => String(job.payload))).toEqual(['high'])
  })

  it('a tenant leaves the others alone, and keeps its place and its backlog', async () => {
    const queue = engine.queue()
    for (const tenant of ['a', 'b']) await queue.submit({ type: 'T', tenant, jobs: payloads(3) })

    await queue.tenant('a').pause()
    const meanwhile = await drain(queue, (job) => job.tenant)
    const view = await queue.tenant('a').view()
    await queue.tenant('a').resume()

    expect(meanwhile).toEqual(['b', 'b', 'b'])
    expect(view).toMatchObject({ state: 'paused', waiting: 3 })
    expect(await drain(queue, (job) => job.tenant)).toEqual(['a', 'a', 'a'])
  })

  it('a tenant holds also what comes back while it is paused', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', tenant: 'a', delayMs: 50 })
    await queue.tenant('a').pause()
    await pause(100)

    expect(await queue.claim(1)).toEqual([])
    await queue.tenant('a').resume()
    expect(await queue.claim(1)).toHaveLength(1)
  })

  it('is shown with the settings that hold, changed ones included', async () => {
    const queue = engine.queue({ quantum: 9 })
    await queue.change({ maxWaitMs: 5_000 })
    await queue.pause({ level: 'low' })

    expect(await queue.view()).toEqual({
      name: 'q',
      quantum: 9,
      alpha: 0,
      maxProgressMs: 60_000,
      maxWaitMs: 5_000,
      congestion: {
        enabled: true,
        baseBackoffMs: 1_000,
        maxBackoffMs: 120_000,
        snapshotMs: 10_000,
        retentionMs: 3_600_000,
      },
      pausedSince: undefined,
      levelsPausedSince: { high: undefined, normal: undefined, low: expect.any(Number) },
    })
  })

  it('shows the tenants that have work or are paused', async () => {
    const queue = engine.queue()
    for (const tenant of ['a', 'b:c']) await queue.submit({ type: 'T', tenant })
    await queue.tenant('b:c').pause()
    const states: Record<string, string> = {}

    for await (const view of queue.tenants()) states[view.tenant] = view.state

    expect(states).toEqual({ a: 'ready', 'b:c': 'paused' })
  })
})

it.each([
  ['a tenant without a name', (queue) => queue.tenant('')],
  ['a weight of 0', (queue) => queue.tenant('a').set({ weight: 0 })],
  ['a level that is none', (queue) => queue.pause({ level: 'urgent' as 'high' })],
  ['a page of 0', (queue) => queue.deadLetters.list({ count: 0 })],
  ['a cursor that is none', (queue) => queue.deadLetters.list({ cursor: '2' })],
  ['a claim of none', (queue) => queue.claim(0)],
  ['a quantum of 0', (queue) => queue.change({ quantum: 0 })],
  ['a processor that is none', (queue) => queue.process('T', 5 as never)],
] as [string, (queue: ReturnType<typeof engine.queue>) => unknown][])('refuses %s', async (_, action) => {
  const queue = engine.queue()

  await expect((async () => action(queue))()).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
})

it.each<[string, (queue: Queue) => Promise<unknown>]>([
  ['queue.events', (queue) => queue.events({ form: '0' } as never).next()],
  ['queue.job', (queue) => queue.job('a', { tennant: 'b' } as never)],
  ['queue.cancel', (queue) => queue.cancel('a', { tennant: 'b' } as never)],
  ['queue.runNow', (queue) => queue.runNow('a', { tennant: 'b' } as never)],
  ['deadLetters.retry', (queue) => queue.deadLetters.retry('a', { playload: 1 } as never)],
  [
    'action.progress',
    (queue) =>
      queue
        .action('a', { tenant: 'b' })
        .progress({ signals: 1 } as never)
        .next(),
  ],
  ['action.finished', (queue) => queue.action('a', { tenant: 'b' }).finished({ timeout: 1 } as never)],
])('passes over no option that nobody knows: %s', async (_, call) => {
  await expect(call(engine.queue())).rejects.toThrow('is not an option; did you mean')
})
