import { describe, expect, it } from 'vitest'
import { shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { checkQueueOptions, declarationOf } from '../../engine/queue-options.ts'
import { parseLimit, type WindowDefinition } from '../../limits/definition.ts'
import { zoneOffsets } from '../../limits/zone-offsets.ts'
import type { Declaration, WindowRule } from '../settings.ts'
import { readLimits } from './read-limits.ts'
import { registerQueue } from './register-queue.ts'

const store = useScriptStore()

const SECOND = 1_000_000
const HOUR = 3_600 * SECOND
const window = (limit: number, windowMs: number, more: Partial<WindowDefinition> = {}): WindowDefinition => ({
  kind: 'window',
  limit,
  windowMs,
  ...more,
})
const stored = () => store.client.hget(store.keys().limits, 'queue/queue/window')

/** What is granted now, of as many as there are. */
async function granted(): Promise<number> {
  const claim = await store.claim(50)
  await store.finish(claim, { outcome: 'succeeded' })
  return claim.jobs.length / 2
}

describe('a window', () => {
  it('grants all it has at once, and the same again when the next begins', async () => {
    await store.begin({ limits: { queue: window(3, 10_000) } })
    await store.submit('a', 9)

    const first = await store.changesOf(() => store.claim(5))
    const full = await store.claim(5, { idleForMs: 60_000 })
    store.now += 10 * SECOND - 1
    const early = await granted()
    store.now += 1

    expect(shortly(first.reply)).toBe('a1 a2 a3')
    expect(first.changes.limits).toEqual({
      'queue/queue/window': '1000000000:3:0',
      'queue/queue/jitter': '50000:1000000000:3:0:1000000000',
    })
    expect(full).toMatchObject({ word: 'idle', waitMs: 10_000 })
    expect(early).toBe(0)
    expect(await granted()).toBe(3)
  })

  it('begins where its offset puts it', async () => {
    await store.begin({ limits: { queue: window(1, 10_000, { offsetMs: 4_000 }) } })
    await store.submit('a', 9)
    await store.claim(1)
    store.now += 4 * SECOND - 1
    const before = await granted()
    store.now += 1

    expect([before, await granted()]).toEqual([0, 1])
  })

  it('grants nothing in its last jitterMs, and what is stale is given back to it', async () => {
    await store.begin({ limits: { queue: window(2, 10_000, { jitterMs: 200 }) } })
    await store.submit('a', 9)
    store.now += 9_799_999
    const claim = await store.claim(1)
    const fresh = claim.freshMs
    await store.finish(claim, { outcome: 'returned' })
    const afterReturn = await stored()
    store.now += 1
    const late = await store.claim(1, { idleForMs: 60_000 })

    expect(fresh).toBe(120)
    expect(afterReturn).toBe('1009799999:0:0')
    expect(late).toMatchObject({ jobs: [], waitMs: 200 })
  })

  it('does not take back what another window granted', async () => {
    await store.begin({ limits: { queue: window(2, 10_000) } })
    await store.submit('a', 9)
    const old = await store.claim(2)
    store.now += 10 * SECOND
    await store.claim(1)

    await store.finish(old, { outcome: 'returned' })

    expect(await stored()).toBe('1010000000:1:0')
  })

  it('counts what it granted when it is made longer or shorter within the same window', async () => {
    await store.begin({ limits: { queue: window(5, 10_000) } })
    await store.submit('a', 20)
    await store.claim(3)

    await store.register({ limits: { queue: window(5, 100_000) } })
    const longer = await granted()
    store.now += 11 * SECOND
    await store.register({ limits: { queue: window(4, 10_000) } })

    expect(longer).toBe(2)
    expect(await granted()).toBe(4)
  })

  it('still grants when a jitter learnt in a long one is more than half of a short one', async () => {
    await store.begin({ limits: { queue: window(5, 10_000) } })
    await store.submit('a', 20)
    await store.client.hset(store.keys().limits, 'queue/queue/jitter', '1000000:1000000000:0:0:1000000000')

    await store.register({ limits: { queue: window(5, 100) } })

    expect(await granted()).toBe(5)
  })

  it('starts anew when the limit was a bucket before', async () => {
    await store.begin({ limits: { queue: '5/h' } })
    await store.submit('a', 20)
    await store.claim(1)

    await store.register({ limits: { queue: window(5, 3_600_000) } })

    expect(await granted()).toBe(5)
  })
})

describe('a window of days in a time zone', () => {
  const day = 86_400_000
  const us = (text: string) => Date.parse(text) * 1_000

  /** A queue that counted in that zone in that year, whatever the year is when this runs. */
  async function beginIn(zone: string, text: string, windowMs = day, offsetMs = 0): Promise<void> {
    const plain = parseLimit('queue', window(4, windowMs, { offsetMs })) as WindowRule
    const rule = { ...plain, zones: zoneOffsets(zone, new Date(text)) }
    await store.empty()
    const declaration: Declaration = {
      ...declarationOf({}, checkQueueOptions('q', {})),
      limits: { queue: [rule], high: [], normal: [], low: [], tenant: [] },
    }
    store.now = us(text)
    await registerQueue(store.redis, store.keys(), declaration, { knewSince: '', nowUs: store.nowUs })
    await store.submit('a', 20)
  }

  /** When the next window begins, as the wait of a claim that finds this one used up says. */
  async function endsAt(): Promise<string> {
    await granted()
    const { waitMs = 0 } = await store.claim(1, { idleForMs: 600_000 })
    return new Date(store.now / 1_000 + waitMs).toISOString()
  }

  it.each([
    ['Europe/Berlin', 'of 23 hours', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00.000Z'],
    ['Europe/Berlin', 'of 25 hours', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00.000Z'],
    ['America/New_York', 'of 23 hours', '2026-03-08T05:00:00Z', '2026-03-09T04:00:00.000Z'],
    ['Australia/Lord_Howe', 'of 24.5 hours', '2026-04-04T13:00:00Z', '2026-04-05T13:30:00.000Z'],
    ['Asia/Kathmandu', 'of 24 hours', '2026-03-28T18:15:00Z', '2026-03-29T18:15:00.000Z'],
  ])('has in %s a day %s that begins at %s and ends at %s', async (zone, _, begins, ends) => {
    await beginIn(zone, begins)

    expect(await endsAt()).toBe(ends)
    store.now = us(ends) - 1
    expect(await granted()).toBe(0)
    store.now += 1
    expect(await granted()).toBe(4)
  })

  it.each([
    ['America/Havana', '2026-03-08T04:30:00Z', '2026-03-08T05:00:00.000Z'],
    ['Atlantic/Azores', '2026-03-29T00:30:00Z', '2026-03-29T01:00:00.000Z'],
    ['America/Santiago', '2026-09-06T03:30:00Z', '2026-09-06T04:00:00.000Z'],
    ['Asia/Beirut', '2026-03-28T21:30:00Z', '2026-03-28T22:00:00.000Z'],
  ])('begins a day of %s that has no midnight where its clocks jump over it', async (zone, before, ends) => {
    await beginIn(zone, before)

    expect(await endsAt()).toBe(ends)
    store.now = us(ends)
    expect(await granted()).toBe(4)
  })

  it.each([
    ['America/Havana', 0, '2026-11-01T04:30:00Z', '2026-11-02T05:00:00.000Z'],
    ['Europe/Berlin', 2.5, '2026-10-25T01:10:00Z', '2026-10-26T01:30:00.000Z'],
    ['Europe/Berlin', 2.5, '2026-10-25T00:10:00Z', '2026-10-25T00:30:00.000Z'],
  ])('does not begin a day of %s twice when clocks show its begin (%d h) twice', async (zone, hours, now, ends) => {
    await beginIn(zone, now, day, hours * 3_600_000)

    expect(await endsAt()).toBe(ends)
  })

  it('has a quarter of a day of seven hours, and grants it once', async () => {
    await beginIn('Europe/Berlin', '2026-10-24T22:00:00Z', day / 4)

    const ends = await endsAt()
    store.now += 6 * HOUR

    expect(ends).toBe('2026-10-25T05:00:00.000Z')
    expect(await granted()).toBe(0)
  })
})

describe('a window after a restart', () => {
  function restart(): void {
    store.now += SECOND
    store.serverId = 'server-2'
  }

  it('of at most a minute is closed for its length and its jitter', async () => {
    await store.begin({ limits: { queue: window(3, 10_000) } })
    await store.submit('a', 9)
    await store.claim(1)
    restart()

    const { waitMs } = await store.claim(1, { idleForMs: 60_000 })

    expect(waitMs).toBe(10_050)
  })

  it('that is longer keeps its count and takes two seconds at full rate as used', async () => {
    await store.begin({ limits: { queue: window(3_600, 3_600_000) } })
    await store.submit('a', 9)
    await store.claim(3)
    restart()
    await store.claim(1)

    expect(await stored()).toBe('1001000000:6:1')
  })

  it('that had counted nothing starts with two seconds at full rate as used, whoever its holder is', async () => {
    await store.begin({ limits: { tenant: window(3_600, 3_600_000) } })
    await store.submit('a', 1)
    await granted()
    store.now += 2 * HOUR
    restart()
    await store.submit('b', 1)
    const { changes } = await store.changesOf(() => store.claim(1))

    expect(changes['tenant:b']).toMatchObject({ 'window:tenant': `${store.now}:3:1` })
    const { rows } = await readLimits(store.requests(), 'c', store.nowUs)
    expect(rows).toMatchObject([{ used: 2, available: 3_598, isEstimated: false }])
  })
})

describe('a window of a store that had lost its queue', () => {
  const declared = { limits: { queue: window(100, 3_600_000), tenant: { daily: window(1_000, 86_400_000) } } }

  /** 2,000 s into an hour. */
  async function lose(): Promise<void> {
    await store.empty()
    store.now += 2 * HOUR + 1_000 * SECOND
    await store.register(declared, '1')
    await store.submit('a', 9)
  }

  it('takes what has passed of it as used, and says so, also when a grant comes back to it', async () => {
    await lose()
    const claim = await store.claim(1)
    const used = await stored()
    await store.finish(claim, { outcome: 'returned' })

    // 2,000 s of the hour's 3,600 have passed: 55.6 of 100.
    expect(used).toBe(`${store.now}:57:1`)
    expect((await stored())?.split(':')[1]).toBe('56')
    const { rows } = await readLimits(store.requests(), 'b', store.nowUs)
    // 2 h and 2,000 s of a day.
    expect(rows).toMatchObject([
      { name: 'queue', used: 56, isEstimated: true },
      { name: 'daily', used: 107, isEstimated: true },
    ])
  })

  it('takes it as used also where a process that did not know the queue was granted something first', async () => {
    await store.empty()
    store.now += 2 * HOUR + 1_000 * SECOND
    await store.register(declared)
    await store.submit('a', 9)
    await store.claim(1)
    await store.register(declared, '900000000')
    const { rows } = await readLimits(store.requests(), 'a', store.nowUs)
    await store.claim(1)

    expect(rows).toMatchObject([
      { name: 'queue', used: 57, isEstimated: true },
      { name: 'daily', used: 108, isEstimated: true },
    ])
    expect(await stored()).toBe(`${store.now}:58:1`)
  })

  it('counts from nothing when the next begins', async () => {
    await lose()
    store.now += HOUR
    await store.claim(1)

    expect(await stored()).toBe(`${store.now}:1:1`)
    const { rows } = await readLimits(store.requests(), '', store.nowUs)
    expect(rows).toMatchObject([{ used: 1, isEstimated: false }])
  })

  it('keeps that in mind through a later restart, which costs two seconds more', async () => {
    await lose()
    store.now += 10 * SECOND
    store.serverId = 'server-2'
    await store.claim(1)

    // 56 before the loss, 0.06 rounded up, and the one of now.
    expect(await stored()).toBe(`${store.now}:58:2`)
  })
})
