import { describe, expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { ClaimReply, Lesson } from './finish-and-claim.ts'
import { readLimits } from './read-limits.ts'

const store = useScriptStore()

const SECOND = 1_000_000
/** A permit every 100 ms, ten at once. */
const day = (limit: number) => ({ kind: 'window', limit, windowMs: 86_400_000 }) as const
const bucket = { kind: 'bucket', limit: 29, windowMs: 2_000, burst: 10, jitterMs: 0 } as const
const pushedBack = (retryAfterMs?: number, upstream = ''): Lesson => ({
  upstream,
  pushback: { retryAfterMs },
  reading: undefined,
})

/** Ends a claim's jobs as pushed back, all with the same answer. */
function pushBack(claim: ClaimReply, lesson: Lesson): Promise<ClaimReply> {
  const finished = finishedAs(claim, { outcome: 'throttled', delayMs: 3_600_000 })
  return store.claim(0, { finished: finished.map((job) => ({ ...job, lesson })) })
}

/** Of every limit: its share of the rate in thousandths, and for how long its upstream has closed it. */
async function learnt(tenant = 'a'): Promise<Record<string, [number, number]>> {
  const { rows } = await readLimits(store.requests('reader'), tenant, store.nowUs)
  return Object.fromEntries(rows.map((row) => [`${row.scope}/${row.name}`, [row.share, row.pushedForUs / 1_000]]))
}

const count = ({ jobs }: ClaimReply) => jobs.length / 2

describe('an upstream that pushes back', () => {
  it('closes the limit for as long as it says', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 50)
    await pushBack(await store.claim(1), pushedBack(5_000))

    const closed = await store.claim(5, { idleForMs: 60_000 })
    store.now += 5 * SECOND - 1
    const early = await store.claim(5)
    store.now += 1

    expect(closed).toMatchObject({ jobs: [], waitMs: 5_000 })
    expect(count(early)).toBe(0)
    expect(count(await store.claim(5))).toBe(5)
  })

  it('closes it for maxCloseMs at most', async () => {
    await store.begin({ limits: { queue: bucket }, maxCloseMs: 2_000 })
    await store.submit('a', 50)

    await pushBack(await store.claim(1), pushedBack(5_000))

    expect(await learnt()).toMatchObject({ 'queue/queue': [700, 2_000] })
  })

  it.each([
    ['window', { kind: 'window', limit: 50, windowMs: 60_000 }],
    ['quota', { kind: 'quota', threshold: 0 }],
    ['concurrency', { kind: 'concurrency', max: 50 }],
  ] as const)('closes a %s too', async (_, limit) => {
    await store.begin({ limits: { queue: limit } })
    await store.submit('a', 50)
    await pushBack(await store.claim(1), pushedBack(5_000))
    const closed = await store.claim(5)
    store.now += 5 * SECOND

    expect(count(closed)).toBe(0)
    expect(count(await store.claim(5))).toBeGreaterThan(0)
  })

  it('cuts the rate to 0.7 once for all calls that were granted before', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 50)
    const [first, second] = [await store.claim(1), await store.claim(1)]
    await pushBack(first as ClaimReply, pushedBack())
    const cut = await learnt()
    await pushBack(second as ClaimReply, pushedBack())
    const same = await learnt()
    store.now += 1_000
    await pushBack(await store.claim(1), pushedBack())

    expect(cut).toEqual({ 'queue/queue': [700, 0] })
    expect(same).toEqual(cut)
    expect(await learnt()).toEqual({ 'queue/queue': [490, 0] })
  })

  it('lets the rate climb by a twentieth a second, with ten seconds’ rest just below where it was pushed back', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 50)
    await pushBack(await store.claim(1), pushedBack())
    const shares: number[] = []

    for (let second = 0; second <= 17; second++) {
      shares.push((await learnt())['queue/queue']?.[0] as number)
      store.now += SECOND
    }

    expect(shares.map((share) => share / 10)).toEqual([
      ...[70, 75, 80, 85, 90, 95, 95, 95, 95, 95, 95, 95, 95, 95, 95, 95],
      ...[100, 100],
    ])
  })

  it('grants at the lower rate', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 99)
    await pushBack(await store.claim(10), pushedBack())
    const used = await store.claim(10)
    store.now += 142_000
    const early = await store.claim(10)
    store.now += 18_000

    // The burst is used up all the same, and the next permit comes not before 100 ms / 0.7.
    expect([used, early, await store.claim(10)].map(count)).toEqual([0, 0, 1])
  })

  it('teaches the limit that the processor names', async () => {
    await store.begin({ limits: { queue: { api: bucket, other: bucket }, tenant: { mine: bucket } } })
    await store.submit('a', 50)

    await pushBack(await store.claim(1), pushedBack(1_000, 'api'))

    expect(await learnt()).toEqual({
      'queue/api': [700, 1_000],
      'queue/other': [1_000, 0],
      'tenant/mine': [1_000, 0],
    })
  })

  it.each([
    [
      'the tenant’s before its level’s before the queue’s',
      { queue: bucket, levels: { normal: bucket }, tenant: bucket },
      'tenant/tenant',
    ],
    ['its level’s before the queue’s', { queue: bucket, levels: { normal: bucket } }, 'normal/normal'],
    ['the queue’s where there is no other', { queue: bucket }, 'queue/queue'],
    ['of two the one with the shorter window', { tenant: { daily: day(10_000), calls: '50/s' } }, 'tenant/calls'],
    [
      'of two with the same window the bucket',
      { queue: { budget: day(10), calls: { kind: 'bucket', limit: 20, windowMs: 86_400_000 } } },
      'queue/calls',
    ],
    ['of two buckets with the same window the slower', { queue: { fast: '100/s', slow: '1/s' } }, 'queue/slow'],
    ['a quota before a window of a day', { queue: { budget: day(10), tokens: { kind: 'quota' } } }, 'queue/tokens'],
    ['a window of a minute before a quota', { queue: { tokens: { kind: 'quota' }, calls: '9/min' } }, 'queue/calls'],
    [
      'one that meters calls before one that counts jobs',
      { queue: bucket, tenant: { kind: 'concurrency', max: 5 } },
      'queue/queue',
    ],
    ['one that counts jobs where there is no other', { tenant: { kind: 'concurrency', max: 5 } }, 'tenant/tenant'],
  ] as const)('teaches without a name the narrowest: %s', async (_, limits, expected) => {
    await store.begin({ limits })
    await store.submit('a', 50)

    await pushBack(await store.claim(1), pushedBack(1_000))

    const taught = Object.entries(await learnt()).filter(([, [, closedMs]]) => closedMs > 0)
    expect(taught.map(([name]) => name)).toEqual([expected])
  })

  it('slows one tenant and never another', async () => {
    await store.begin({ limits: { tenant: bucket } })
    await store.submit('a', 9)
    await store.submit('b', 9)
    const [ofA] = finishedAs(await store.claim(1), { outcome: 'throttled', delayMs: 1_000 })
    if (!ofA) throw new Error('a job was to be claimed')

    const next = await store.claim(6, { finished: [{ ...ofA, lesson: pushedBack(60_000) }] })

    expect(shortly(next)).toBe('b1 b2 b3 b4 b5 b6')
    expect([await learnt('a'), await learnt('b')]).toEqual([
      { 'tenant/tenant': [700, 60_000] },
      { 'tenant/tenant': [1_000, 0] },
    ])
  })
})

describe('answers that are told together', () => {
  const throttled = (claim: ClaimReply) =>
    finishedAs(claim, { outcome: 'throttled', delayMs: 3_600_000 }).map((job) => ({ ...job, lesson: pushedBack() }))

  /** The upstream has pushed back once; one call was granted before that, one after it. */
  async function cutOnce() {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 50)
    const [first, before] = [await store.claim(1), await store.claim(1)]
    await store.claim(0, { finished: throttled(first) })
    store.now += 1_000
    return { before, after: await store.claim(1) }
  }

  it('cut nothing where those that push back are to grants from before the cut', async () => {
    const { before, after } = await cutOnce()
    const lesson = {
      ...pushedBack(),
      pushback: undefined,
      reading: { remaining: 500, resetInMs: 60_000, limit: 1_000 },
    }
    const fine = finishedAs(after, { outcome: 'succeeded' }).map((job) => ({ ...job, lesson }))

    await store.claim(0, { finished: [...throttled(before), ...fine] })

    expect(await learnt()).toMatchObject({ 'queue/queue': [700, 0] })
  })

  it('cut again where one of those is to a grant after it, whatever is told behind it', async () => {
    const { before, after } = await cutOnce()

    await store.claim(0, { finished: [...throttled(after), ...throttled(before)] })

    expect(await learnt()).toMatchObject({ 'queue/queue': [490, 0] })
  })
})
