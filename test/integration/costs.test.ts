import { describe, expect, it } from 'vitest'
import { InvalidJobError, type QueueOptions } from '../../src/index.ts'
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
