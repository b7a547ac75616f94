import { describe, expect, it } from 'vitest'
import { homeKey } from '../../src/store/keys.ts'
import { all } from '../support/all.ts'
import { busiestWindow } from '../support/arrivals.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

describe('a limit that two queues and a caller without one share', () => {
  it('lets all of them together start no more than it allows', async () => {
    const sluice = engine.sluice()
    const upstream = sluice.limit('upstream', '30/s')
    const queues = ['sync', 'backfill'].map((name) => sluice.queue(name, { limits: { upstream } }))
    const calls: number[] = []
    const jobs = new Countdown(60)
    for (const queue of queues) {
      await queue.submit({ tenant: 'a', type: 'T', jobs: Array.from({ length: 30 }, () => ({})) })
      queue.process('T', () => {
        calls.push(performance.now())
        jobs.tick()
      })
    }

    let isDone = false
    const acquiring = until(async () => {
      const { granted } = await upstream.acquire()
      if (granted) calls.push(performance.now())
      return isDone
    })
    await jobs.reached
    isDone = true
    await acquiring

    calls.sort((a, b) => a - b)
    expect(busiestWindow(calls, 1_000).count).toBeLessThanOrEqual(30)
  })

  it('is closed for all of them by an upstream that pushes one back', async () => {
    const sluice = engine.sluice()
    const upstream = sluice.limit('upstream', '1000/s')
    const [sync, backfill] = ['sync', 'backfill'].map((name) => sluice.queue(name, { limits: { upstream } }))
    await sync?.submit({ type: 'T' })
    await backfill?.submit({ type: 'T' })
    const [job] = (await sync?.claim(1)) ?? []

    await job?.throttle(job.learn({ status: 429, headers: { 'retry-after': '3600' } }))

    expect(await backfill?.claim(1)).toEqual([])
    expect(await upstream.acquire()).toMatchObject({ granted: false })
    expect((await upstream.status()).pushedBackUntil).toBeGreaterThan(Date.now() + 3_000_000)
  })
})

it('is attached once, also by a change while running', async () => {
  const sluice = engine.sluice()
  const upstream = sluice.limit('upstream', { kind: 'concurrency', max: 4 })
  const queue = sluice.queue('sync', { limits: { upstream } })

  await expect(queue.limits.change({ levels: { high: { again: upstream } } })).rejects.toMatchObject({
    code: 'SLUICE_INVALID_OPTIONS',
    message: expect.stringContaining('would attach the shared limit "upstream" a second time'),
  })
  await queue.limits.remove('queue', 'upstream')
  await queue.limits.change({ levels: { high: { again: upstream } } })

  expect(await queue.limits.list()).toMatchObject([{ name: 'again', scope: 'high' }])
})

describe('a queue that has jobs', () => {
  it('is refused under limits of another group, with what to do, and keeps what it has', async () => {
    const before = engine.queue()
    const { id } = await before.submit({ type: 'T' })
    const sluice = engine.sluice()
    const github = sluice.limit('github', '500/s')

    const moved = sluice.queue('q', { limits: { github } })

    await expect(moved.submit({ type: 'T' })).rejects.toThrow(
      /limits would put the queue into group "github", but it has 1 jobs in group "q"\. Open it without shared limits until these have ended/,
    )
    await expect(moved.claim(1)).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
    expect((await before.claim(1)).map((job) => job.id)).toEqual([id])
  })

  it('moves on when it has run empty, and is refused where it was', async () => {
    const before = engine.queue()
    await before.submit({ type: 'T' })
    for (const job of await before.claim(1)) await job.succeed()
    const sluice = engine.sluice()
    const moved = sluice.queue('q', { limits: { github: sluice.limit('github', '500/s') } })

    await moved.submit({ type: 'T' })

    const late = engine.sluice().queue('q', { limits: {} })
    await expect(late.submit({ type: 'T' })).rejects.toThrow(
      'has 1 jobs in group "github". Open it with limits of group',
    )
    const [job] = await moved.claim(1)
    await job?.succeed()
    await late.submit({ type: 'T' })
  })

  it('is followed into its group by a process that gives no limits, whatever that does there', async () => {
    const sluice = engine.sluice()
    const github = sluice.limit('github', '500/s')
    const worker = sluice.queue('q', { limits: { github } })
    const { id } = await worker.submit({ type: 'T' })
    const byName = engine.sluice().queue('q')

    const counts = await byName.counts()
    const limits = await byName.limits.list()
    const second = await byName.submit({ type: 'T', delayMs: 60_000 })
    const canceled = await byName.cancel(second.id)
    const claimed = await byName.claim(1)
    const events = byName.events({ follow: false, from: '0' })
    await claimed[0]?.fail(new Error('no'))

    expect(counts).toMatchObject({ waiting: 1 })
    expect(limits).toMatchObject([{ name: 'github', limit: 500 }])
    expect(canceled).toBe('canceled')
    expect(claimed.map((job) => job.id)).toEqual([id])
    expect((await all(events)).map(({ type }) => type)).toContain('job.failed')
    expect(await worker.counts()).toMatchObject({ submitted: 2, canceled: 1, delayed: 1 })
  })
})

describe('a queue that a deploy moves into a group while processes of the old code are there', () => {
  it('takes nothing more where it was: they are refused, and what they would have stranded is not accepted', async () => {
    const old = engine.sluice()
    const before = old.queue('q')
    const declaring = engine.sluice().queue('q', { limits: { queue: '1000/s' } })
    await declaring.counts()
    await before.submit({ type: 'T' })
    for (const job of await before.claim(1)) await job.succeed()
    const sluice = engine.sluice()
    const moved = sluice.queue('q', { limits: { github: sluice.limit('github', '500/s') } })
    await moved.claim(1)

    await expect(before.submit({ type: 'T' })).rejects.toThrow(
      'limits are not given, and another process has moved the queue to group "github" since. Restart this process',
    )
    await expect(declaring.submit({ type: 'T' })).rejects.toThrow(
      /put the queue into group "q", but another process has moved it to group "github" since\. Restart this process with the limits that the other one has/,
    )
    await expect(before.claim(1)).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
    const { id } = await moved.submit({ type: 'T' })
    expect((await moved.claim(1)).map((job) => job.id)).toEqual([id])
  })

  it('stays with its job where a move was cut short and one has come since', async () => {
    const client = engine.server.client()
    const before = engine.sluice().queue('q')
    const { id } = await before.submit({ type: 'T' })
    // As a process leaves it that saw the queue empty and died before it had closed the old place.
    await client.set(homeKey(engine.prefix, 'q'), 'q\ngithub')
    const sluice = engine.sluice()

    const moved = sluice.queue('q', { limits: { github: sluice.limit('github', '500/s') } })

    await expect(moved.submit({ type: 'T' })).rejects.toThrow('it has 1 jobs in group "q"')
    expect(await client.get(homeKey(engine.prefix, 'q'))).toBe('q')
    expect((await before.claim(1)).map((job) => job.id)).toEqual([id])
    client.disconnect()
  })
})

describe("share: 'strict'", () => {
  it('caps each tenant at its part of a window, and loses nothing to rounding', async () => {
    // A year and a day: no test meets its end.
    const limits = { queue: { kind: 'window', limit: 9, windowMs: 366 * 86_400_000 } } as const
    const queue = engine.queue({ limits, share: 'strict' })
    for (const tenant of ['large', 'small']) {
      const count = tenant === 'large' ? 50 : 10
      await queue.submit({ tenant, type: 'T', jobs: Array.from({ length: count }, () => ({})) })
    }

    const claimed = [...(await queue.claim(9)), ...(await queue.claim(9))]

    const of = (name: string) => claimed.filter(({ tenant }) => tenant === name).length
    expect([of('large'), of('small')].sort()).toEqual([4, 5])
    for (const job of claimed) await job.succeed()
  })
})
