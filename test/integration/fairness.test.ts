import { describe, expect, it } from 'vitest'
import { Countdown } from '../support/countdown.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

function share(order: readonly string[], tenant: string): number {
  return order.filter((each) => each === tenant).length / order.length
}

describe('tenants', () => {
  it('of equal weight alternate', async () => {
    const queue = engine.queue({ quantum: 1 })
    for (const tenant of ['a', 'b', 'c']) await queue.submit({ type: 'T', tenant, jobs: payloads(20) })

    const order = await drain(queue, (job) => job.tenant, 30)

    expect(order.join('')).toBe('abc'.repeat(10))
  })

  it.each([1, 7, 20])('get shares by their weights within 2 %% when %i jobs are claimed at a time', async (atOnce) => {
    const queue = engine.queue()
    await queue.tenant('heavy').set({ weight: 3 })
    for (const tenant of ['heavy', 'light']) await queue.submit({ type: 'T', tenant, jobs: payloads(600) })
    const order: string[] = []

    while (order.length < 640) {
      const jobs = await queue.claim(atOnce)
      order.push(...jobs.map((job) => job.tenant))
      await Promise.all(jobs.map((job) => job.succeed()))
    }

    expect(share(order.slice(0, 640), 'heavy')).toBeCloseTo(0.75, 1)
    expect(Math.abs(share(order.slice(0, 640), 'heavy') - 0.75)).toBeLessThan(0.015)
  })

  it('get shares by fractions of a weight', async () => {
    const queue = engine.queue()
    await queue.tenant('small').set({ weight: 0.1 })
    for (const tenant of ['small', 'usual']) await queue.submit({ type: 'T', tenant, jobs: payloads(500) })

    const order = await drain(queue, (job) => job.tenant, 440)

    expect(Math.abs(share(order, 'small') - 1 / 11)).toBeLessThan(0.02)
  })

  it('are served alone at full speed, however small their weight', async () => {
    const queue = engine.queue()
    await queue.tenant('small').set({ weight: 0.01 })
    await queue.submit({ type: 'T', tenant: 'small', jobs: payloads(200) })
    const done = new Countdown(200)

    queue.process('T', () => done.tick(), { concurrency: 5 })

    await done.reached
  })

  it('with little to do are not held up by one with very much', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', tenant: 'huge', jobs: payloads(5_000) })
    await queue.submit({ type: 'T', tenant: 'tiny', jobs: payloads(20) })

    const order = await drain(queue, (job) => job.tenant, 60)

    expect(order.filter((tenant) => tenant === 'tiny')).toHaveLength(20)
  })

  it('earn nothing by idling', async () => {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ type: 'T', tenant: 'busy', jobs: payloads(60) })
    await drain(queue, () => '', 20)
    await queue.submit({ type: 'T', tenant: 'late', jobs: payloads(40) })

    const order = await drain(queue, (job) => job.tenant, 20)

    expect(order.filter((tenant) => tenant === 'late')).toHaveLength(10)
  })

  it('change their weight while running', async () => {
    const queue = engine.queue()
    for (const tenant of ['a', 'b']) await queue.submit({ type: 'T', tenant, jobs: payloads(400) })
    await drain(queue, () => '', 40)

    await queue.tenant('a').set({ weight: 4 })

    const order = await drain(queue, (job) => job.tenant, 200)
    expect(Math.abs(share(order, 'a') - 0.8)).toBeLessThan(0.04)
  })

  it('are audited: what they were entitled to and what they got', async () => {
    const queue = engine.queue()
    await queue.tenant('heavy').set({ weight: 3 })
    for (const tenant of ['heavy', 'light']) await queue.submit({ type: 'T', tenant, jobs: payloads(400) })
    await drain(queue, () => '', 200)

    const { fairness } = await queue.tenant('heavy').view()

    expect(fairness.normal.received).toBeGreaterThan(140)
    expect(Math.abs(fairness.normal.entitled - 150)).toBeLessThan(8)
  })
})

describe('levels', () => {
  it('are served high, then normal, then low', async () => {
    const queue = engine.queue()
    for (const level of ['low', 'high', 'normal'] as const) await queue.submit({ type: 'T', level, jobs: payloads(5) })

    const order = await drain(queue, (job) => job.level)

    expect(order.join(' ')).toBe(
      [...Array(5).fill('high'), ...Array(5).fill('normal'), ...Array(5).fill('low')].join(' '),
    )
  })

  it('are overridden by their tenant’s: all its lines stand there, and its jobs keep their own', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', tenant: 'a', level: 'low', jobs: payloads(3) })
    await queue.submit({ type: 'T', tenant: 'b', jobs: payloads(3) })

    await queue.tenant('a').set({ level: 'high' })
    const order = await drain(queue, (job) => `${job.tenant} ${job.level}`, 4)
    await queue.submit({ type: 'T', tenant: 'a', level: 'low', jobs: payloads(1) })
    await queue.tenant('a').set({ level: null })

    expect(order).toEqual(['a low', 'a low', 'a low', 'b normal'])
    expect(await drain(queue, (job) => job.tenant)).toEqual(['b', 'b', 'a'])
  })

  it('can be served by some workers only, in the queue’s order', async () => {
    const queue = engine.queue()
    for (const level of ['low', 'high', 'normal'] as const) await queue.submit({ type: 'T', level, jobs: payloads(2) })
    const order: string[] = []
    const done = new Countdown(4)

    queue.process(
      'T',
      (job) => {
        order.push(job.level)
        done.tick()
      },
      { concurrency: 1, levels: ['low', 'high'] },
    )
    await done.reached

    expect(order).toEqual(['high', 'high', 'low', 'low'])
    expect(await queue.counts()).toMatchObject({ waiting: 2 })
  })
})

describe('base priority', () => {
  it('is a head start or handicap in time', async () => {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ type: 'T', tenant: 'usual', jobs: payloads(5) })
    await queue.submit({ type: 'T', tenant: 'premium', jobs: payloads(5) }, { basePriority: -1_000_000 })
    await queue.tenant('later').set({ basePriority: 1_000_000 })
    await queue.submit({ type: 'T', tenant: 'later', jobs: payloads(5) })

    const order = await drain(queue, (job) => job.tenant)

    expect(order).toEqual([...Array(5).fill('premium'), ...Array(5).fill('usual'), ...Array(5).fill('later')])
  })
})

describe('alpha', () => {
  /** Half of a small tenant's work and a tenth of a large one's is done; then alpha changes. */
  async function orderUnder(alpha: number): Promise<string[]> {
    const queue = engine.queue({ quantum: 1 })
    await queue.submit({ type: 'T', tenant: 'large', jobs: payloads(100) })
    await queue.submit({ type: 'T', tenant: 'small', jobs: payloads(20) })
    await drain(queue, () => '', 20)
    await queue.change({ alpha })
    return drain(queue, (job) => job.tenant)
  }

  it('of 0 lets a small tenant have its share to the end', async () => {
    expect((await orderUnder(0)).lastIndexOf('small')).toBeLessThan(22)
  })

  it('above 0 lets the one wait that has had much of its work done, until the other is as far', async () => {
    expect((await orderUnder(10_000)).lastIndexOf('small')).toBeGreaterThan(80)
  })

  it('below 0 finishes first what is begun', async () => {
    const queue = engine.queue({ quantum: 1, alpha: -10_000 })
    for (const tenant of ['a', 'b', 'c']) await queue.submit({ type: 'T', tenant, jobs: payloads(10) })

    const order = await drain(queue, (job) => job.tenant)

    expect(order.join('')).toMatch(/^abca{9}b{9}c{9}$/)
  })

  it('never holds anyone back for longer than maxProgressMs', async () => {
    const queue = engine.queue({ quantum: 1, alpha: 1_000_000, maxProgressMs: 0 })
    await queue.submit({ type: 'T', tenant: 'large', jobs: payloads(100) })
    await queue.submit({ type: 'T', tenant: 'small', jobs: payloads(10) })

    expect((await drain(queue, (job) => job.tenant)).lastIndexOf('small')).toBeLessThan(22)
  })
})

describe('the starvation guard', () => {
  async function lowAmong(maxWaitMs: number): Promise<number> {
    const queue = engine.queue({ quantum: 1, maxWaitMs })
    await queue.submit({ type: 'T', tenant: 'low', level: 'low', jobs: payloads(100) })
    await queue.submit({ type: 'T', tenant: 'high', level: 'high', jobs: payloads(300) })
    let low = 0
    const started = performance.now()
    // The share while both have work, for long enough that the low one is overdue many times.
    for (let taken = 0; taken < 250 && performance.now() - started < 15_000; taken++) {
      const [job] = await queue.claim(1)
      if (job?.level === 'low') low += 1
      await job?.succeed()
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    return low
  }

  it('gives the overdue a turn, at most one in ten, whatever their level', async () => {
    const low = await lowAmong(30)

    expect(low).toBeGreaterThanOrEqual(5)
    expect(low).toBeLessThanOrEqual(25)
  })

  it('can be switched off', async () => {
    expect(await lowAmong(0)).toBe(0)
  })
})
