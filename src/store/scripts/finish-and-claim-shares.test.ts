import { describe, expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { type LimitDefinition, parseLimit } from '../../limits/definition.ts'
import { changeLimit } from './change-limit.ts'
import { changeTenant } from './change-tenant.ts'
import type { FinishedJob } from './finish-and-claim.ts'

const store = useScriptStore()

const SECOND = 1_000_000

async function begin(limit: LimitDefinition, backlogs: Readonly<Record<string, number>>): Promise<void> {
  await store.begin({ limits: { queue: limit }, share: 'strict' })
  for (const [tenant, jobs] of Object.entries(backlogs)) await store.submit(tenant, jobs)
}

/** Claims and ends what it can get for so long, every 10 ms; what each tenant had. */
async function run(forUs: number): Promise<Record<string, number>> {
  const had: Record<string, number> = {}
  for (let passed = 0; passed < forUs; passed += 10_000) {
    const claim = await store.claim(20)
    for (let at = 0; at < claim.jobs.length; at += 2) {
      const tenant = (claim.jobs[at] as string).split(':').at(-1) as string
      had[tenant] = (had[tenant] ?? 0) + 1
    }
    if (claim.jobs.length > 0) await store.finish(claim, { outcome: 'succeeded' })
    store.now += 10_000
  }
  return had
}

describe('strict shares of a window', () => {
  const window = (limit: number) => ({ kind: 'window', limit, windowMs: 1_000 }) as const

  it('are equal, whether the others use theirs or not', async () => {
    await begin(window(12), { a: 50, b: 50, c: 2 })

    expect(await run(900_000)).toEqual({ a: 4, b: 4, c: 2 })
  })

  it('leave nothing over by rounding', async () => {
    await begin(window(11), { a: 50, b: 50, c: 50 })

    const had = await run(900_000)

    expect(Object.values(had).sort()).toEqual([3, 4, 4])
  })

  it('leave nothing over by rounding where the permit above a part came back unused', async () => {
    await begin(window(4), { a: 9, b: 9, c: 9 })
    const [, second] = finishedAs(await store.claim(2), { outcome: 'returned' })
    await store.claim(0, { finished: [{ ...second, isSpecial: true } as FinishedJob] })

    expect(await run(900_000)).toEqual({ b: 2, c: 1 })
  })

  it('are one at least, however many there are', async () => {
    await begin(window(3), { a: 9, b: 9, c: 9, d: 9, e: 9 })

    const first = await run(SECOND)
    const second = await run(SECOND)

    expect(Object.values(first)).toEqual([1, 1, 1])
    expect(Object.keys({ ...first, ...second })).toHaveLength(5)
  })

  it('grow when tenants go and shrink when they come', async () => {
    await begin(window(12), { a: 99, b: 4 })
    const both = await run(SECOND)
    const alone = await run(SECOND)
    await store.submit('c', 99)
    await store.submit('d', 99)

    expect(both).toEqual({ a: 6, b: 4 })
    expect(alone).toEqual({ a: 12 })
    expect(await run(SECOND)).toEqual({ a: 4, c: 4, d: 4 })
  })
})

describe('strict shares of a bucket', () => {
  const bucket = { kind: 'bucket', limit: 20, windowMs: 1_000, burst: 1, jitterMs: 0 } as const

  it('are equal, whether the others use theirs or not', async () => {
    await begin(bucket, { a: 500, b: 500, c: 500, d: 1 })

    const had = await run(10 * SECOND)

    // d is there for a moment only: three share 20 a second.
    for (const tenant of ['a', 'b', 'c']) {
      expect(had[tenant]).toBeGreaterThanOrEqual(63)
      expect(had[tenant]).toBeLessThanOrEqual(68)
    }
    expect(had.d).toBe(1)
  })

  it('leave what an idle one does not use, where fair ones would give it away', async () => {
    await begin(bucket, { a: 500, b: 500 })
    await store.client.zadd(store.keys().parked, 9e15, 'sleeper-1', 9e15, 'sleeper-2')

    const had = await run(10 * SECOND)

    expect(had.a).toBeGreaterThanOrEqual(48)
    expect(had.a).toBeLessThanOrEqual(51)
  })

  it('are a queue’s whole rate for one alone', async () => {
    await begin(bucket, { a: 500 })

    const { a = 0 } = await run(5 * SECOND)

    expect(a).toBeGreaterThanOrEqual(98)
    expect(a).toBeLessThanOrEqual(101)
  })

  it('grow when tenants go, however long they would have had to wait', async () => {
    const hourly = { kind: 'bucket', limit: 24, windowMs: 86_400_000, burst: 1, jitterMs: 0 } as const
    const others = Array.from({ length: 23 }, (_, at) => [`t${at}`, 1] as const)
    await begin(hourly, { a: 9, ...Object.fromEntries(others) })
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    for (const [tenant] of others) await changeTenant(store.requests(), tenant, { paused: true }, store.nowUs)

    store.now += 3_600 * SECOND

    expect(shortly(await store.claim(1))).toBe('a2')
  })

  it('go by a limit that the queue shares as soon as that has changed', async () => {
    await store.empty()
    store.group = 'gitlab'
    const daily = { kind: 'bucket', limit: 2, windowMs: 86_400_000, burst: 1, jitterMs: 0 } as const
    await store.register({ share: 'strict', limits: { upstream: sharedLimit(daily) } })
    await store.submit('a', 2)
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    expect(shortly(await store.claim(1))).toBe('')

    const rule = parseLimit('gitlab', '1000/s')
    await changeLimit(store.groupRequests(), { name: 'gitlab', rule, isDeclared: false, nowUs: store.nowUs })
    store.now += SECOND

    expect(shortly(await store.claim(1))).toBe('a2')
  })

  it('grant late what came free within their reach, and that keeps for so much less', async () => {
    // The queue has four at once, each of three tenants one every 32.475 ms.
    await begin({ kind: 'bucket', limit: 100, windowMs: 1_000, burst: 4, jitterMs: 50 }, { a: 9, b: 9, c: 9 })

    const first = await store.claim(3)
    store.now += 32_475 + 1_000
    const late = await store.claim(3)

    expect([first.jobs.length / 2, first.freshMs]).toEqual([3, 30])
    expect([late.jobs.length / 2, late.freshMs]).toEqual([3, 30 - 1])
  })

  it('start anew when the limit becomes a window', async () => {
    await begin(bucket, { a: 500 })
    await run(SECOND)

    await store.register({ limits: { queue: { kind: 'window', limit: 5, windowMs: 3_600_000 } }, share: 'strict' })

    expect(await run(SECOND)).toEqual({ a: 5 })
  })
})
