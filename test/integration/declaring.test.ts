import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { all } from '../support/all.ts'
import { Countdown } from '../support/countdown.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

// A window without an end that a test would meet: what it grants is counted, not timed.
const three = { kind: 'window', limit: 3, windowMs: 366 * 86_400_000 } as const
const thirty = Array.from({ length: 30 }, () => ({}))

describe('a process that names a queue without its options', () => {
  it('leaves the limits of the workers as they are, whatever it does', async () => {
    const worker = engine.queue({ limits: { queue: three } })
    await worker.submit({ tenant: 'a', type: 'T', jobs: thirty })
    const byName = engine.sluice().queue('q')

    const { id } = await byName.submit({ tenant: 'a', type: 'T' })
    await byName.cancel(id, { tenant: 'a' })
    await byName.counts()
    await byName.pause({ level: 'low' })
    const claimed = [...(await worker.claim(20)), ...(await byName.claim(20))]

    expect(claimed).toHaveLength(3)
    expect(await byName.limits.list()).toMatchObject([{ name: 'queue', limit: 3 }])
    expect((await all(byName.events({ from: '0', follow: false }))).map(({ type }) => type)).not.toContain(
      'limits.changed',
    )
    for (const job of claimed) await job.succeed()
  })

  it('leaves every other shared option as it is, and its errors speak of what holds', async () => {
    const worker = engine.queue({ maxPending: 2, quantum: 7, congestion: { baseBackoffMs: 5 } })
    await worker.submit({ type: 'T', jobs: [{}, {}] })

    const byName = engine.sluice().queue('q')
    const view = await byName.view()

    expect(view).toMatchObject({ quantum: 7, congestion: { baseBackoffMs: 5, maxBackoffMs: 120_000 } })
    await expect(byName.submit({ type: 'T' }, { whenFull: 'error' })).rejects.toMatchObject({ maxPending: 2 })
  })

  it('makes a new queue known, with the defaults', async () => {
    const byName = engine.queue()

    expect(await byName.view()).toMatchObject({ quantum: 4, congestion: { enabled: true } })
    expect(await byName.limits.list()).toEqual([])
  })
})

describe('a process that gives some options', () => {
  it('changes these alone', async () => {
    const worker = engine.queue({ limits: { queue: three }, quantum: 7 })
    await worker.counts()

    await engine.sluice().queue('q', { quantum: 2 }).counts()

    expect(await worker.limits.list()).toMatchObject([{ limit: 3 }])
    expect(await worker.view()).toMatchObject({ quantum: 2 })
  })

  it('takes the limits off when it says that there are none', async () => {
    const worker = engine.queue({ limits: { queue: three } })
    await worker.submit({ tenant: 'a', type: 'T', jobs: thirty })

    await engine.sluice().queue('q', { limits: {} }).counts()
    const claimed = await worker.claim(20)

    expect(claimed).toHaveLength(20)
    for (const job of claimed) await job.succeed()
  })

  it('puts its own limits in the place of all that others gave: a deploy, of which an event tells', async () => {
    const worker = engine.queue({ limits: { queue: three, tenant: '5/s' } })
    await worker.counts()

    await engine
      .sluice()
      .queue('q', { limits: { queue: '100/s' } })
      .counts()

    expect(await worker.limits.list()).toMatchObject([{ name: 'queue', limit: 100 }])
    expect((await all(worker.events({ from: '0', follow: false }))).map(({ type }) => type)).toEqual(['limits.changed'])
  })
})

describe('a Redis that was emptied', () => {
  /** As FLUSHALL does, without the queues of other tests. */
  async function empty(): Promise<void> {
    const client = engine.server.client()
    const keys = await client.keys(`${engine.prefix}:*`)
    await client.del(...keys)
    client.disconnect()
  }

  it('gets the limits from the worker that gave them, although a process came first that gives none', async () => {
    const worker = engine.queue({ limits: { queue: three }, quantum: 7 })
    const byName = engine.sluice().queue('q')
    await worker.counts()
    await byName.counts()

    await empty()
    await byName.submit({ tenant: 'a', type: 'T', jobs: thirty })
    const unlimited = await byName.limits.list()
    const claimed = await worker.claim(20)

    expect(unlimited).toEqual([])
    // What was granted before is not known any more: a long window counts the part of it that is over as used.
    expect(claimed.length).toBeLessThanOrEqual(3)
    expect(await byName.limits.list()).toMatchObject([{ name: 'queue', limit: 3 }])
    expect(await byName.view()).toMatchObject({ quantum: 7 })
    for (const job of claimed) await job.succeed()
  })

  it('gets them from a process that only asks for permits, and closes them before that is granted one', async () => {
    const caller = engine.queue({ limits: { queue: { kind: 'bucket', limit: 60, windowMs: 60_000 } } })
    const byName = engine.sluice().queue('q')
    await caller.limits.acquire('queue')
    await byName.counts()

    await empty()
    await byName.counts()
    const permit = await caller.limits.acquire('queue')

    expect(permit).toMatchObject({ granted: false })
    expect(await byName.limits.list()).toMatchObject([{ name: 'queue', limit: 60, closedUntil: expect.any(Number) }])
  })

  it('closes a limit that is used without a queue for whoever knew it, although a process came first that did not', async () => {
    const upstream = { kind: 'bucket', limit: 60, windowMs: 60_000 } as const
    const limit = engine.sluice().limit('upstream', upstream)
    await limit.acquire()

    await empty()
    const newcomer = await engine.sluice().limit('upstream', upstream).acquire()
    const permit = await limit.acquire()

    expect(newcomer).toMatchObject({ granted: true })
    expect(permit).toMatchObject({ granted: false })
    // For a minute and more, where what the newcomer was granted is back after a second.
    expect(permit.waitMs).toBeGreaterThan(50_000)
  })

  it('gets them back also from a worker that runs, before that starts one job without them', async () => {
    const worker = engine.queue({ limits: { queue: { kind: 'concurrency', max: 2 } } })
    const [started, emptied, done] = [withResolvers<void>(), withResolvers<void>(), new Countdown(30)]
    let [running, most] = [0, 0]
    worker.process('FIRST', async () => {
      started.resolve()
      await emptied.promise
    })
    worker.process(
      'T',
      async () => {
        running += 1
        most = Math.max(most, running)
        await pause(1)
        running -= 1
        done.tick()
      },
      { concurrency: 10 },
    )
    await worker.submit({ type: 'FIRST' })
    await started.promise

    await empty()
    await engine.sluice().queue('q').submit({ tenant: 'a', type: 'T', jobs: thirty })
    emptied.resolve()
    await done.reached

    expect(most).toBeLessThanOrEqual(2)
    expect(await worker.limits.list()).toMatchObject([{ kind: 'concurrency', limit: 2 }])
  })
})
