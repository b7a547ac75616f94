import { describe, expect, it } from 'vitest'
import { InvalidJobError, type Queue, type QueueOptions } from '../../src/index.ts'
import { busiestWindow } from '../support/arrivals.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

describe('under a bucket', () => {
  it('cheap and dear jobs together cost no more than its limit in any window, and nearly as much', async () => {
    const queue = engine.queue({ limits: { queue: '30/s' } })
    const costs = Array.from({ length: 40 }, (_, index) => (index % 4 === 0 ? 6 : 1))
    await queue.submit({ tenant: 'dear', type: 'T', jobs: costs.map((cost) => ({ cost })) })
    await queue.submit({ tenant: 'cheap', type: 'T', jobs: costs.map(() => ({})) })
    const permits: number[] = []
    const done = new Countdown(80)

    queue.process('T', (job) => {
      const at = performance.now()
      for (let permit = 0; permit < job.cost; permit++) permits.push(at)
      done.tick()
    })
    await done.reached

    expect(permits).toHaveLength(40 + 90)
    expect(busiestWindow(permits, 1_000).count).toBeLessThanOrEqual(30)
    // 130 at 28.6 a second take 4.6 s; a busy machine is late, and may return grants that went stale.
    expect((permits.at(-1) as number) - (permits[0] as number)).toBeLessThan(14_000)
  })
})

describe('under a window', () => {
  it('jobs are granted while what is left pays for the next, and the tenant is parked until it starts over', async () => {
    // A year and a day: no test meets its end.
    const queue = engine.queue({ limits: { tenant: { kind: 'window', limit: 10, windowMs: 366 * 86_400_000 } } })
    await queue.submit({ tenant: 'a', type: 'T', cost: 3, jobs: Array.from({ length: 8 }, () => ({})) })
    await queue.submit({ tenant: 'b', type: 'T' })

    const claimed = [...(await queue.claim(10)), ...(await queue.claim(10))]

    expect(claimed.map(({ tenant, cost }) => `${tenant}${cost}`).sort()).toEqual(['a3', 'a3', 'a3', 'b1'])
    expect(await queue.tenant('a').view()).toMatchObject({ state: 'parked', waiting: 5 })
    expect(await queue.limits.status('tenant', 'a')).toMatchObject({ used: 9, remaining: 1 })
    for (const job of claimed) await job.succeed()
  })
})

describe('a cost that a limit could never grant', () => {
  const wide = '1000/s'

  it.each<[string, QueueOptions['limits']]>([
    ['queue', { queue: '10/s' }],
    ['partner', { queue: wide, partner: '10/s' }],
    ['normal', { queue: wide, levels: { normal: '10/s' } }],
    ['tenant', { queue: wide, tenant: '10/s' }],
    ['daily', { queue: wide, daily: { kind: 'window', limit: 10, windowMs: 86_400_000 } }],
  ])('is refused in the name of the limit "%s", and nothing is stored', async (name, limits) => {
    const queue = engine.queue({ ...(limits ? { limits } : {}) })

    const one = await queue.submit({ id: 'dear', type: 'T', cost: 11 }).catch((error: unknown) => error)
    const jobs = [{ type: 'T' }, { type: 'T', id: 'dear', cost: 11 }]
    const many = await queue.submit({ jobs }).catch((error: unknown) => error)

    for (const error of [one, many]) {
      expect(error).toBeInstanceOf(InvalidJobError)
      expect(error).toMatchObject({ code: 'SLUICE_INVALID_JOB', jobId: 'dear' })
      expect((error as Error).message).toContain(
        `its cost of 11 is more than the limit "${name}" could ever grant (10)`,
      )
    }
    expect(await queue.counts()).toMatchObject({ submitted: 0, waiting: 0 })
    expect(await queue.job('dear')).toBeUndefined()
  })

  it('is granted by a limit that was raised', async () => {
    const queue = engine.queue({ limits: { queue: '10/s' } })
    await expect(queue.submit({ type: 'T', cost: 11 })).rejects.toThrow(InvalidJobError)

    await queue.limits.change({ queue: '1000/s' })
    await queue.submit({ type: 'T', cost: 11 })

    queue.process('T', () => undefined)
    await until(async () => (await queue.counts()).succeeded === 1)
  })
})

it.each([0, -1, 1.5, Number.NaN, 1_000_000_001, '5' as never])('refuses a cost of %s', async (cost) => {
  const queue = engine.queue()

  await expect(queue.submit({ type: 'T', cost })).rejects.toThrow(
    /its cost must be a whole number from 1 to 1000000000/,
  )

  expect(await queue.counts()).toMatchObject({ submitted: 0 })
})

describe('a schedule is refused for its cost where a submit is', () => {
  const bucket = '10/s'
  const window = { kind: 'window', limit: 10, windowMs: 60_000 } as const
  const quota = { kind: 'quota', threshold: 5 } as const
  const concurrency = { kind: 'concurrency', max: 10 } as const
  const own: Record<string, QueueOptions['limits']> = {
    ...Object.fromEntries(
      Object.entries({ bucket, window, quota, concurrency }).flatMap(([kind, limit]) => [
        [`a ${kind} of the queue`, { queue: limit }],
        [`a ${kind} of its level`, { levels: { low: limit } }],
        [`a ${kind} of another level`, { levels: { high: limit } }],
        [`a ${kind} of each tenant`, { tenant: limit }],
      ]),
    ),
    'two limits, the narrow one first': { tenant: bucket, queue: '1000/s' },
    'two limits, the wide one first': { queue: bucket, tenant: '1000/s' },
  }
  const shared = { bucket, window, quota }

  /** For each cost, whether jobs of it are taken. */
  async function taken(submit: (cost: number) => Promise<unknown>): Promise<Record<number, boolean>> {
    const found: Record<number, boolean> = {}
    for (const cost of [1, 2, 10, 11, 1_000]) {
      found[cost] = await submit(cost).then(
        () => true,
        (error) => {
          expect(error.message).toContain('could ever grant')
          return false
        },
      )
    }
    return found
  }

  async function compare(queue: Queue): Promise<Record<number, boolean>> {
    const job = { type: 'T', tenant: 'a', level: 'low' } as const
    const submitted = await taken((cost) => queue.submit({ ...job, cost, delayMs: 3_600_000 }))
    const scheduled = await taken((cost) => queue.schedules.set('dear', { every: '1h', job: { ...job, cost } }))
    expect(scheduled).toEqual(submitted)
    await queue.schedules.remove('dear')
    return submitted
  }

  it.each(Object.entries(own))('under %s', async (_, limits) => {
    await compare(engine.queue({ limits: limits ?? {} }))
  })

  it.each(Object.entries(shared))('under a shared %s, of the queue and of its level', async (_, definition) => {
    const sluice = engine.sluice()
    const upstream = sluice.limit('upstream', definition)

    await compare(sluice.queue('of-queue', { limits: { upstream } }))
    await compare(sluice.queue('of-level', { limits: { levels: { low: { upstream } } } }))
  })

  it('under a limit that its tenant alone has', async () => {
    const queue = engine.queue({ limits: { tenant: '1000/s' } })
    await queue.tenant('a').setLimits({ tenant: bucket })

    expect(await compare(queue)).toEqual({ 1: true, 2: true, 10: true, 11: false, 1000: false })
  })

  it('under a limit of which each tenant gets its share only, one changed while running, and none any more', async () => {
    const queue = engine.queue({ limits: { queue: bucket }, share: 'strict' })
    for (const tenant of ['b', 'c', 'd']) await queue.submit({ type: 'T', tenant })

    await compare(queue)
    await queue.limits.change({ queue: '2/s' })
    expect(await compare(queue)).toEqual({ 1: true, 2: true, 10: false, 11: false, 1000: false })
    await queue.limits.remove('queue')
    expect(await compare(queue)).toEqual({ 1: true, 2: true, 10: true, 11: true, 1000: true })
  })
})
