import { describe, expect, it } from 'vitest'
import { finishedAs, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'
import { pauseQueue } from './pause-queue.ts'

const store = useScriptStore()

const IDLE = { idleForMs: 30_000 }

/** Who was woken by it. */
async function wokenBy(change: () => Promise<unknown>): Promise<string[]> {
  const { changes } = await store.changesOf(change)
  return Object.keys(changes).flatMap((key) => (key.startsWith('wake:') ? [key.slice('wake:'.length)] : []))
}

describe('a client that serves some levels only', () => {
  it('stands among the idle with its levels, and holds an alarm of its own', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })
    await store.claim(1, IDLE, 'all')

    const { reply, changes } = await store.changesOf(() => store.claim(1, { ...IDLE, levels: 'high normal' }, 'some'))

    expect(reply).toMatchObject({ word: 'idle', waitMs: 3_000, holdsAlarm: true })
    expect(changes).toMatchObject({
      idle: { 'some high+normal': 1_030_000_000 },
      'alarm:high+normal': '1003000000:some high+normal',
    })
    expect(changes).not.toHaveProperty('alarm')
  })

  it('shares that alarm with those of the same levels', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })
    await store.claim(1, { ...IDLE, levels: 'high' }, 'first')

    expect(await store.claim(1, { ...IDLE, levels: 'high' }, 'second')).toMatchObject({ holdsAlarm: false })
  })

  it('is taken off the list when it gets all it wants', async () => {
    await store.claim(1, { ...IDLE, levels: 'high' }, 'some')
    await store.submit('a', 1, { level: 'high' })

    const { changes } = await store.changesOf(() => store.claim(1, { ...IDLE, levels: 'high' }, 'some'))

    expect(changes).not.toHaveProperty('idle')
    expect(await store.client.zcard(store.keys().idle)).toBe(0)
  })

  it('is not woken for a level that it does not serve; whoever does is', async () => {
    await store.claim(1, IDLE, 'all')
    store.now += 1_000
    await store.claim(1, { ...IDLE, levels: 'high' }, 'some')

    expect(await wokenBy(() => store.submit('a', 1))).toEqual(['all'])
    expect(await wokenBy(() => store.submit('b', 1))).toEqual([])
    expect(await wokenBy(() => store.submit('c', 1, { level: 'high' }))).toEqual(['some'])
  })

  it('is woken with others where they only serve all levels between them', async () => {
    await store.claim(1, { ...IDLE, levels: 'low' }, 'low')
    await store.claim(1, { ...IDLE, levels: 'high' }, 'high-1')
    await store.claim(1, { ...IDLE, levels: 'high' }, 'high-2')
    await store.claim(1, { ...IDLE, levels: 'normal' }, 'normal')
    await pauseQueue(store.requests(), { isPaused: true, nowUs: store.nowUs })

    const resume = () => pauseQueue(store.requests(), { isPaused: false, nowUs: store.nowUs })

    expect((await wokenBy(resume)).toSorted()).toEqual(['high-2', 'low', 'normal'])
  })

  it('is found behind hundreds that are of no use', async () => {
    const idle = Array.from({ length: 300 }, (_, at) => [store.now + 2_000_000, `high-${at} high`]).flat()
    await store.client.zadd(store.keys().idle, ...idle)
    await store.client.zadd(store.keys().idle, store.now + 1_000_000, 'normal normal')

    expect(await wokenBy(() => store.submit('a', 1))).toEqual(['normal'])
  })

  it('wakes another for what its own claim has brought to a level that it does not serve', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+1000000', '', record(1)] })
    await store.client.zadd(store.keys().idle, store.now + 60_000_000, 'all')
    store.now += 1_000_000

    const rung = await wokenBy(() => store.claim(2, { ...IDLE, levels: 'high' }, 'some'))
    await store.client.zadd(store.keys().idle, store.now + 60_000_000, 'all')
    const again = await wokenBy(() => store.claim(2, { ...IDLE, levels: 'high' }, 'some'))

    expect(rung).toEqual(['all'])
    expect(again).toEqual([])
  })

  it('wakes another for that also when its own hands are full', async () => {
    await store.submit('a', 1, { level: 'high' })
    await store.submit('b', 0, { kind: 'later', entries: ['+1000000', '', record(1)] })
    await store.client.zadd(store.keys().idle, store.now + 60_000_000, 'idle-high high', store.now + 50_000_000, 'all')
    store.now += 1_000_000

    expect(await wokenBy(() => store.claim(1, { ...IDLE, levels: 'high' }, 'some'))).toEqual(['all'])
  })

  it('is woken to hold its alarm by one whose hands are full, and not again while it does', async () => {
    await store.submit('a', 2)
    const first = await store.claim(1, IDLE)
    await store.client.zadd(store.keys().idle, store.now + 60_000_000, 'some high')

    const full = await wokenBy(() => store.claim(1, { ...IDLE, finished: finishedAs(first, { outcome: 'succeeded' }) }))
    const held = await store.claim(1, { ...IDLE, levels: 'high' }, 'some')
    await store.submit('a', 1)
    const fullAgain = await wokenBy(() => store.claim(1, IDLE, 'third'))

    expect(full).toEqual(['some'])
    expect(held).toMatchObject({ holdsAlarm: true })
    expect(fullAgain).toEqual([])
  })
})

it('gives an overdue tenant its turn though another has waited for longer, on a level whose limit is used up', async () => {
  await store.begin({ limits: { levels: { low: { few: { kind: 'window', limit: 1, windowMs: 86_400_000 } } } } })
  await store.submit('l', 2, { level: 'low' })
  await store.finish(await store.claim(1), { outcome: 'succeeded' })
  store.now += 1_000_000
  await changeTenant(store.requests('operator'), 'n', { base: 10_000_000 }, store.nowUs)
  await store.submit('m', 2_000)
  await store.submit('n', 1)
  const waited: number[] = []

  for (let second = 1; second < 120; second++) {
    store.now += 1_000_000
    const claim = await store.claim(4)
    if (shortly(claim).includes('n1')) waited.push(second)
    await store.finish(claim, { outcome: 'succeeded' })
  }

  expect(waited).toHaveLength(1)
  expect(waited[0]).toBeGreaterThan(60)
  expect(waited[0]).toBeLessThan(75)
})
