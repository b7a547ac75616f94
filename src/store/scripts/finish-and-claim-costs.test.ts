import { describe, expect, it } from 'vitest'
import { finishedAs, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { decodeJobs } from '../../engine/job.ts'
import type { Level } from '../names.ts'
import { changeSettings } from './change-settings.ts'
import { changeTenant } from './change-tenant.ts'
import type { ClaimReply } from './finish-and-claim.ts'
import { readLimits } from './read-limits.ts'

const store = useScriptStore()

const SECOND = 1_000_000
/** A permit every 100 ms, two at once. */
const bucket = { kind: 'bucket', limit: 11, windowMs: 1_000, burst: 2, jitterMs: 0 } as const

/** Jobs of one tenant, by what they cost; their payloads are 1, 2, … */
function submit(tenant: string, costs: readonly number[], level: Level = 'normal') {
  const entries = costs.map((cost, at) => (cost === 1 ? record(at + 1) : `*${cost};${record(at + 1)}`))
  return store.submit(tenant, costs.length, { entries, level })
}

const ones = (count: number) => Array.from({ length: count }, () => 1)

const finished = (claim: ClaimReply, outcome: 'succeeded' | 'returned' = 'succeeded') =>
  finishedAs(claim, { outcome }).map((job) => ({ ...job, isSpecial: true }))

describe('a job that costs more', () => {
  it('is charged what it costs', async () => {
    await store.begin({ limits: { queue: { kind: 'window', limit: 10, windowMs: 10_000 } } })
    await submit('a', [3, 4, 5])

    const { reply, changes } = await store.changesOf(() => store.claim(5))

    expect(shortly(reply)).toBe('a1 a2')
    expect(changes.limits).toMatchObject({ 'queue/queue/window': '1000000000:7:0' })
    expect(changes.queue).toMatchObject({ 'granted:queue/queue': '7' })
  })

  it('is saved up for when it costs more than the burst: the queue waits, then serves it', async () => {
    await store.begin({ limits: { queue: bucket } })
    await submit('a', [6, 1])
    await submit('b', [1])

    // Nothing was granted before, so that much is saved up.
    const first = await store.claim(9, { idleForMs: 60_000 })
    await store.claim(0, { finished: finished(first) })
    store.now += 500_000 - 1
    const early = await store.claim(1)
    store.now += 1
    const later = await store.claim(1)

    expect(shortly(first)).toBe('a1')
    expect(shortly(early)).toBe('')
    expect(shortly(later)).toBe('b1')
  })

  it('holds its tenant alone where the tenant’s own limit has to save up', async () => {
    await store.begin({ limits: { tenant: bucket } })
    await submit('a', [1, 8])
    await submit('b', [1])
    const first = await store.claim(1)

    const { reply, changes } = await store.changesOf(() => store.claim(5))
    // One permit was used: the tat is 100 ms ahead, and six more must come together.
    store.now += 700_000 - 1
    const early = await store.claim(5)
    store.now += 1

    expect(shortly(first)).toBe('a1')
    expect(shortly(reply)).toBe('b1')
    expect(changes.parked).toEqual({ a: 1_000_700_000 })
    expect(shortly(early)).toBe('')
    expect(shortly(await store.claim(5))).toBe('a2')
  })

  it('never lets more than the limit through in any sliding window, whatever jobs cost', async () => {
    const limit = 20
    await store.begin({ limits: { queue: { kind: 'bucket', limit, windowMs: 1_000, burst: 4, jitterMs: 0 } } })
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (const tenant of ['a', 'b', 'c'])
      await submit(
        tenant,
        Array.from({ length: 40 }, () => 1 + random(limit)),
      )
    const grants: { at: number; cost: number }[] = []

    for (let step = 0; step < 400; step++) {
      const claim = await store.claim(1 + random(4))
      for (const { cost } of decodeJobs(claim.fence, claim.jobs, [])) grants.push({ at: store.now, cost })
      if (claim.jobs.length > 0) await store.claim(0, { finished: finished(claim) })
      store.now += random(300_000)
    }

    const inWindowFrom = (from: number) =>
      grants.filter(({ at }) => at >= from && at < from + SECOND).reduce((sum, { cost }) => sum + cost, 0)
    expect(grants.length).toBeGreaterThan(40)
    expect(Math.max(...grants.map(({ at }) => inWindowFrom(at)))).toBeLessThanOrEqual(limit)
  })

  it('counts as what it costs for turns and fairness', async () => {
    await store.begin()
    await submit('a', [4, 4, 4, 4])
    await submit('b', [1, 1, 1, 1, 1, 1, 1, 1])
    const order: string[] = []

    for (let at = 0; at < 10; at++) order.push(shortly(await store.claim(1)))

    // A turn is four: one job of a, four of b.
    expect(order).toEqual(['a1', 'b1', 'b2', 'b3', 'b4', 'a2', 'b5', 'b6', 'b7', 'b8'])
  })

  it('that overdraws its turn pays with the next', async () => {
    await store.begin()
    await submit('a', [9, 9])
    await submit('b', ones(20))
    const order: string[] = []

    for (let at = 0; at < 14; at++) order.push((shortly(await store.claim(1))[0] as string) ?? '')

    // Nine are two turns of four, and one is still owed.
    expect(order.join('')).toBe('abbbbbbbbabbbb')
  })

  it('takes one slot of its tenant all the same, and leaves it the others', async () => {
    await store.begin({ limits: { tenant: { kind: 'concurrency', max: 5 } } })
    await submit('a', [5, 5, 5])

    expect(shortly(await store.claim(9))).toBe('a1 a2 a3')
  })

  it('is not passed by what else its tenant has where an override has put all levels on one', async () => {
    await store.begin({ limits: { queue: bucket } })
    await changeTenant(store.requests('operator'), 'a', { level: 'normal' }, store.nowUs)
    await submit('a', ones(30))
    await store.claim(2)
    await submit('a', [7], 'high')
    const got: string[] = []

    for (let at = 0; at < 10; at++) {
      store.now += 100_000
      got.push(shortly(await store.claim(1)))
    }

    expect(got.indexOf('a1')).toBe(6)
    expect(got.slice(0, 6).join('')).toBe('')
  })

  it('gets what its level saves up, also where others come back in the same claim', async () => {
    const twenty = { kind: 'bucket', limit: 20, windowMs: 1_000, burst: 1, jitterMs: 0 } as const
    const own = { ...twenty, windowMs: 20_000 }
    await store.begin({ limits: { levels: { normal: { rate: twenty } }, tenant: { own } } })
    for (const tenant of ['b', 'c', 'd']) await submit(tenant, [1, 1])
    for (let at = 0; at < 3; at++) {
      await store.claim(1)
      store.now += 50_000
    }
    await changeTenant(store.requests('operator'), 'a', { base: -1_000_000 }, store.nowUs)
    await submit('a', [20])

    // b and c are due; a, who is first, can be served 10 ms later.
    store.now = 1_001_090_000
    const early = await store.claim(1)
    store.now = 1_001_100_000

    expect(shortly(early)).toBe('')
    expect(shortly(await store.claim(1))).toBe('a1')
  })

  it('under a limit that queues share is not forgotten by it: no more than the limit in a second', async () => {
    const twenty = { kind: 'bucket', limit: 20, windowMs: 1_000, burst: 1, jitterMs: 0 } as const
    await beginGroup(store, twenty, { a: 0 })
    await submit('a', [20, ...ones(40)])
    let granted = 0

    for (let ms = 0; ms < 1_000; ms += 10) {
      store.use('a')
      const claim = await store.claim(4)
      for (const { cost } of decodeJobs(claim.fence, claim.jobs, [])) granted += cost
      store.now += 10_000
    }

    expect(granted).toBe(20)
  })

  it('that goes stale counts as what it cost: the limit allows for more time on the way', async () => {
    const fast = { kind: 'bucket', limit: 1_000, windowMs: 1_000, burst: 100, jitterMs: 50 } as const
    await store.begin({ limits: { queue: fast } })
    await submit('a', [100])

    for (let at = 0; at < 60; at++) {
      await store.claim(0, { finished: finished(await store.claim(1), 'returned') })
      store.now += SECOND / 2
    }

    const { rows } = await readLimits(store.requests('reader'), '', store.nowUs)
    expect(rows[0]?.jitterUs).toBeGreaterThan(50_000)
  })

  it('gives back all it cost when it was not started', async () => {
    await store.begin({ limits: { queue: { kind: 'window', limit: 10, windowMs: 10_000 } } })
    await submit('a', [7])
    const claim = await store.claim(1)

    await store.claim(0, { finished: finished(claim, 'returned') })

    expect(await store.client.hget(store.keys().limits, 'queue/queue/window')).toBe('1000000000:0:0')
  })

  it.each([
    ['a bucket', { kind: 'bucket', limit: 5, windowMs: 1_000, burst: 1, jitterMs: 0 }],
    ['a window', { kind: 'window', limit: 5, windowMs: 1_000 }],
  ] as const)(
    'than %s can grant since that was lowered gets all of it, and stops nobody for ever',
    async (_, lower) => {
      await store.begin({ limits: { queue: bucket } })
      await submit('a', [11])
      await submit('b', [1])
      const patch = { limits: { queue: { queue: { name: 'queue', ...ruleOf(lower) } } } }
      await changeSettings(store.requests('operator'), patch, store.nowUs)
      const got: string[] = []

      for (let at = 0; at < 10; at++) {
        got.push(shortly(await store.claim(1)))
        store.now += 500_000
      }

      expect(got.filter((each) => each !== '')).toEqual(['a1', 'b1'])
    },
  )
})

/** As scripts have it, in µs. */
function ruleOf(definition: { kind: 'bucket' | 'window'; limit: number; windowMs: number }) {
  const { kind, limit: count, windowMs } = definition
  const common = { count, window: windowMs * 1_000, jitter: 0 }
  return kind === 'bucket' ? { kind, ...common, burst: 1 } : { kind, ...common, offset: 0 }
}

describe('submitting', () => {
  it.each([
    ['queue', { limits: { queue: bucket } }],
    ['level', { limits: { levels: { normal: { normal: bucket } } } }],
    ['tenant', { limits: { tenant: { rate: bucket } } }],
  ] as const)('refuses what a limit of the %s could never grant, and stores nothing', async (_, options) => {
    await store.begin(options)

    const { reply, changes } = await store.changesOf(() => submit('a', [1, 12, 11]))

    expect(reply).toMatchObject({ accepted: 0, costly: { line: 0, job: 1, most: 11 } })
    expect(changes).toEqual({})
  })

  it('asks the level that the lines of its tenant stand on', async () => {
    await store.begin({ limits: { levels: { low: { few: { kind: 'window', limit: 5, windowMs: 1_000 } } } } })
    await changeTenant(store.requests('operator'), 'a', { level: 'low' }, store.nowUs)
    await changeTenant(store.requests('operator'), 'b', { level: 'high' }, store.nowUs)

    expect(await submit('a', [10], 'high')).toMatchObject({ accepted: 0, costly: { most: 5 } })
    expect(await submit('b', [10], 'low')).toMatchObject({ accepted: 1, costly: undefined })
  })

  it('takes what a quota may not grant today: its upstream may tomorrow', async () => {
    await store.begin({ limits: { queue: { kind: 'quota' } } })

    expect(await submit('a', [1_000_000])).toMatchObject({ accepted: 1, costly: undefined })
  })
})
