import { describe, expect, it } from 'vitest'
import { jobsOf, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { cancelJob } from './cancel-job.ts'
import { changeTenant } from './change-tenant.ts'
import { addressOf } from './read-job.ts'

const store = useScriptStore()

const ERROR = '{"name":"E","message":"m"}'

describe('turns', () => {
  it('gives each tenant turns of a quantum, over several claims', async () => {
    await store.submit('a', 9)
    await store.submit('b', 9)
    const claims: string[] = []

    for (let i = 0; i < 5; i++) claims.push(shortly(await store.claim(3)))

    expect(claims).toEqual(['a1 a2 a3', 'a4 b1 b2', 'b3 b4 a5', 'a6 a7 a8', 'b5 b6 b7'])
  })

  it('gives a tenant of weight 3 three times as much', async () => {
    await store.begin({ quantum: 1 })
    await changeTenant(store.requests(), 'a', { weight: 3 }, store.nowUs)
    await store.submit('a', 9)
    await store.submit('b', 9)
    const claims: string[] = []

    for (let i = 0; i < 8; i++) claims.push(shortly(await store.claim(1)))

    expect(claims.join(' ')).toBe('a1 a2 a3 b1 a4 a5 a6 b2')
  })

  it('serves a tenant alone at once however small its weight, and less often beside others', async () => {
    await changeTenant(store.requests(), 'a', { weight: 0.05 }, store.nowUs)
    await store.submit('a', 5)
    const alone = [await store.claim(1), await store.claim(2)].map(shortly)
    await store.submit('b', 100)

    const beside = await store.claim(44)

    expect(alone).toEqual(['a1', 'a2 a3'])
    expect(
      shortly(beside)
        .split(' ')
        .filter((job) => job.startsWith('a')),
    ).toEqual(['a4', 'a5'])
  })

  it('serves high before normal before low, and only the levels asked for', async () => {
    await store.submit('a', 1, { level: 'low' })
    await store.submit('b', 1, { level: 'high' })
    await store.submit('c', 1, { level: 'normal' })

    expect(shortly(await store.claim(5, { levels: 'normal low' }))).toBe('c1 a1')
    expect(shortly(await store.claim(5))).toBe('b1')
  })

  it('lets the lanes of a tenant take turns', async () => {
    await store.begin({ quantum: 2 })
    const lanes: string[] = []
    for (const lane of ['x', 'y', 'z']) await store.submit('a', 4, { lane })

    for (let i = 0; i < 6; i++)
      lanes.push(...jobsOf(await store.claim(2)).map(({ jobKey }) => jobKey.split(':')[1] ?? ''))

    expect(lanes.join('')).toBe('xxyyzzxxyyzz')
    expect(await store.client.exists(`${store.keys().queue.slice(0, -5)}ring:normal:a`)).toBe(0)
  })

  it('starts the next job of an ordered lane only when the one before has ended', async () => {
    await store.submit('a', 2, { lane: '!exact' })
    const first = await store.changesOf(() => store.claim(5))

    const waiting = await store.claim(5)
    await store.finish(first.reply, { outcome: 'retry', delayMs: 1_000, error: ERROR })
    const retrying = await store.claim(5)
    store.now += 1_000_000
    const second = await store.claim(5)
    const ended = await store.changesOf(() => store.finish(second, { outcome: 'succeeded' }))

    expect(first.changes).toEqual({
      'claim:1000000000': {
        'normal:!exact:1000000000:a': '|rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      'lane:normal:!exact:a': ['|rs|SEND|||2'],
      'lanes:a': {
        'busy:normal:!exact': 'normal:!exact:1000000000:a',
      },
      leases: {
        '1000000000:me': 1_015_000_000,
      },
      queue: {
        claimed: '1',
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:normal': 1,
        'state.turns': 1,
        'state.virtual:normal': 1_000_000,
        'state.waiting': 1,
        'state.weights:normal': null,
        'state.snapshot_due': 1_010_000_000,
        'state.starts': 1,
      },
      'ready:normal': null,
      running: {
        a: '1',
      },
      'since:normal': null,
      'tenant:a': {
        'normal.reached': 1000,
        'normal.entitled': 1_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 1,
        'normal.score': null,
        'normal.virtual': 1_000_000,
        'state.waiting': 1,
      },
    })
    expect([first.reply, waiting, retrying, second].map(shortly)).toEqual(['a1', '', '', 'a1'])
    expect(ended.changes).toEqual({
      'claim:1001000000': null,
      'client:me': {
        '6': '6',
      },
      'lanes:a': {
        'busy:normal:!exact': null,
      },
      leases: null,
      queue: {
        'state.entry:normal': 1_001_000_001,
        'state.clock': 1_001_000_001,
        'state.running': null,
        'state.running:normal': null,
        'state.weights:normal': 1000,
        succeeded: '1',
        'state.starts': null,
      },
      'ready:normal': {
        a: 1_001_000_001,
      },
      running: null,
      'since:normal': {
        a: 1_001_000_000,
      },
      'tenant:a': {
        'normal.lane': '!exact',
        'normal.lanes': 1,
        'normal.score': 1_001_000_001,
        'pace.received': 2,
      },
    })
    expect(shortly(await store.claim(5))).toBe('a2')
  })

  it('gives the overdue a turn once in ten, whatever their level', async () => {
    await store.begin({ quantum: 1, maxWaitMs: 1_000 })
    await store.submit('z', 5, { level: 'low' })
    store.now += 2_000_000
    await store.submit('a', 30, { level: 'high' })
    const order: string[] = []

    for (let i = 0; i < 20; i++) order.push(shortly(await store.claim(1))[0] ?? '')

    expect(order.filter((tenant) => tenant === 'z')).toHaveLength(1)
    expect(order.indexOf('z')).toBeLessThan(10)
  })

  it('finds an overdue tenant behind three that have had turns since they came into line', async () => {
    await store.begin({ quantum: 1, maxWaitMs: 1_000 })
    for (const tenant of ['a', 'b', 'c']) await store.submit(tenant, 30)
    await store.submit('d', 5, { basePriority: 3_600_000 })
    store.now += 2_000_000
    const order: string[] = []

    for (let i = 0; i < 10; i++) order.push(shortly(await store.claim(1))[0] ?? '')

    expect(order.slice(0, 3).toSorted()).toEqual(['a', 'b', 'c'])
    expect(order.indexOf('d')).toBe(9)
  })

  it('answers `again` when it has looked at its share of tenants and found none', async () => {
    for (let i = 0; i < 70; i++) {
      const { firsts } = await store.submit(`t${i}`, 1)
      await cancelJob(store.requests('canceler'), addressOf(`normal:default:${firsts[0]}:t${i}`, ''), store.nowUs)
    }
    await store.submit('z', 1)

    const words = [await store.claim(1), await store.claim(1)]

    expect(words.map(({ word }) => word)).toEqual(['again', 'claimed'])
  })
})
