import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { finishedAs, jobsOf, record, ScriptStore } from '../../testing/script-store.ts'
import { keyPrefix } from '../keys.ts'
import { cancelJob } from './cancel-job.ts'
import { changeTenant } from './change-tenant.ts'
import type { ClaimReply } from './finish-and-claim.ts'
import { addressOf } from './read-job.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

const ERROR = '{"name":"E","message":"m"}'

/** What a claim got, in short: `a1 b1 a2`, by tenant and payload. */
function shortly(claim: ClaimReply): string {
  return jobsOf(claim)
    .map(({ jobKey, record: text }) => jobKey.split(':').at(-1) + (text.split('\n').at(-1) ?? ''))
    .join(' ')
}

describe('claiming', () => {
  it('leases the next jobs under one fence', async () => {
    await store.submit('a', 3)

    const { reply, changes } = await store.changesOf(() => store.claim(2))

    expect(reply).toEqual({
      word: 'claimed',
      stale: [],
      waitMs: undefined,
      holdsAlarm: false,
      fence: '1000000000',
      freshMs: undefined,
      jobs: ['normal:default:1000000000:a', record(1), 'normal:default:1000000001:a', record(2)],
      hasDuties: false,
      kept: [],
    })
    expect(changes).toEqual({
      'claim:1000000000': {
        'normal:default:1000000000:a': '|rs|SEND|||1',
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      'lane:normal:default:a': ['|rs|SEND|||3'],
      leases: {
        '1000000000:me': 1_015_000_000,
      },
      queue: {
        'state.fence': 1_000_000_000,
        'state.running': 2,
        'state.running:normal': 2,
        'state.turns': 1,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
      },
      running: {
        a: '2',
      },
      'tenant:a': {
        'normal.received': 2,
        'normal.used': 2000,
        'state.waiting': 1,
      },
    })
  })

  it('empties a lane, and takes its tenant out of line', async () => {
    await store.submit('a', 1)

    const { changes } = await store.changesOf(() => store.claim(2))

    expect(changes).toEqual({
      'claim:1000000000': {
        'normal:default:1000000000:a': '|rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      'lane:normal:default:a': null,
      leases: {
        '1000000000:me': 1_015_000_000,
      },
      queue: {
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:normal': 1,
        'state.turns': 1,
        'state.virtual:normal': 1_000_000,
        'state.waiting': null,
        'state.weights:normal': null,
      },
      'ready:normal': null,
      running: {
        a: '1',
      },
      'since:normal': null,
      'tenant:a': {
        '(expires)': true,
        idle: '1',
        'normal.entitled': 1_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 1,
        'normal.score': null,
        'normal.virtual': 1_000_000,
        'state.waiting': null,
      },
    })
  })

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

    const beside = await store.claim(40)

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
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:normal': 1,
        'state.turns': 1,
        'state.virtual:normal': 1_000_000,
        'state.waiting': 1,
        'state.weights:normal': null,
      },
      'ready:normal': null,
      running: {
        a: '1',
      },
      'since:normal': null,
      'tenant:a': {
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
        'state.clock': 1_001_000_001,
        'state.running': null,
        'state.running:normal': null,
        'state.weights:normal': 1000,
        succeeded: '1',
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
      },
    })
    expect(shortly(await store.claim(5))).toBe('a2')
  })

  it('says on which level a job stood whose tenant has an override', async () => {
    await store.submit('a', 1, { level: 'low' })
    await changeTenant(store.requests(), 'a', { level: 'high' }, store.nowUs)

    const claimed = await store.changesOf(() => store.claim(1))
    const finished = await store.changesOf(() => store.finish(claimed.reply, { outcome: 'released' }))

    expect(jobsOf(claimed.reply)).toEqual([{ jobKey: 'low:default:1000000000:a', standing: 'high', record: record(1) }])
    expect(claimed.changes).toEqual({
      'claim:1000000000': {
        'low:default:1000000000:a': '^high||rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '2': '2',
      },
      'lane:low:default:a': null,
      leases: {
        '1000000000:me': 1_015_000_000,
      },
      queue: {
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:high': 1,
        'state.turns': 1,
        'state.virtual:high': 1_000_000,
        'state.waiting': null,
        'state.weights:high': null,
      },
      'ready:high': null,
      running: {
        a: '1',
      },
      'since:high': null,
      'tenant:a': {
        'high.entitled': 1_000_000,
        'high.received': 1,
        'high.score': null,
        'high.virtual': 1_000_000,
        'low.lane': null,
        'low.lanes': null,
        'state.waiting': null,
      },
    })
    expect(finished.changes).toEqual({
      aside: {
        'low:default:1000000000:a': '|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '3': '3',
      },
      'front:low:default:a': ['low:default:1000000000:a'],
      leases: null,
      queue: {
        released: '1',
        'state.clock': 1_000_000_003,
        'state.running': null,
        'state.running:high': null,
        'state.waiting': 1,
        'state.weights:high': 1000,
      },
      'ready:high': {
        a: 1_000_000_003,
      },
      running: null,
      'since:high': {
        a: 1_000_000_000,
      },
      'tenant:a': {
        'high.score': 1_000_000_003,
        'low.lane': 'default',
        'low.lanes': 1,
        'state.front': 1,
        'state.waiting': 1,
      },
    })
  })

  it('takes names as they are, also where they look like a format', async () => {
    await store.submit('a%20b%25d', 1, { lane: 'x%3Ay%25s' })

    expect(jobsOf(await store.claim(1)).map(({ jobKey }) => jobKey)).toEqual(['normal:x%3Ay%25s:1000000000:a%20b%25d'])
  })

  it('answers with no more bytes than allowed, unless the first job is larger', async () => {
    const large = JSON.stringify('x'.repeat(600_000))
    await store.submit('a', 0, { entries: [large, large, large].map((payload) => record(JSON.parse(payload))) })

    expect(jobsOf(await store.claim(3))).toHaveLength(2)
    expect(jobsOf(await store.claim(3))).toHaveLength(1)
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

  it('answers `again` when it has looked at its share of tenants and found none', async () => {
    for (let i = 0; i < 70; i++) {
      const { firsts } = await store.submit(`t${i}`, 1)
      await cancelJob(store.requests('canceler'), addressOf(`normal:default:${firsts[0]}:t${i}`, ''), store.nowUs)
    }
    await store.submit('z', 1)

    const words = [await store.claim(1), await store.claim(1)]

    expect(words.map(({ word }) => word)).toEqual(['again', 'claimed'])
  })

  it('lets one job at a time out that has outlived two leases', async () => {
    await store.submit('a', 2)
    await store.claim(2)
    store.now += 15_000_000
    await store.claim(2)
    store.now += 15_000_000
    await store.claim(0)
    store.now += 1_000_000

    const first = await store.claim(2)
    const second = await store.claim(2, { hasSuspect: true })

    expect(shortly(first)).toBe('a1')
    expect(shortly(second)).toBe('')
    expect(shortly(await store.claim(2, {}, 'another'))).toBe('a2')
  })
})

describe('limits', () => {
  const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 2, jitterMs: 100 } as const

  it('parks a tenant until its bucket has a permit, serves the others, and takes it back in line then', async () => {
    await store.begin({ limits: { tenant: bucket } })
    await store.submit('a', 3)
    await store.submit('b', 1)

    const claimed = await store.changesOf(() => store.claim(5))
    const early = await store.claim(5)
    store.now += 122_223
    const due = await store.changesOf(() => store.claim(5))

    expect(shortly(claimed.reply)).toBe('a1 a2 b1')
    expect(claimed.reply.freshMs).toBe(60)
    expect(claimed.changes).toEqual({
      'claim:1000000000': {
        'normal:default:1000000000:a': '|rs|SEND|||1',
        'normal:default:1000000001:a': '|rs|SEND|||2',
        'normal:default:1000000002:b': '|rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      'lane:normal:default:a': ['|rs|SEND|||3'],
      'lane:normal:default:b': null,
      leases: {
        '1000000000:me': 1_015_000_000,
      },
      limits: {
        'tenant/tenant/jitter': '100000:1000000000:3:0:1000000000',
      },
      parked: {
        a: 1_000_122_223,
      },
      queue: {
        parked: '1',
        'state.clock': 1_000_000_004,
        'state.fence': 1_000_000_000,
        'state.running': 3,
        'state.running:normal': 3,
        'state.turns': 2,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
        'state.weights:normal': null,
      },
      'ready:normal': null,
      running: {
        a: '2',
        b: '1',
      },
      'since:normal': null,
      'tenant:a': {
        'bucket:tenant': '1000244446:1000000000:0',
        'normal.entitled': 1_000_000,
        'normal.received': 2,
        'normal.score': 1_000_000_004,
        'normal.virtual': 1_000_000,
        parked: 'tenant',
        'state.waiting': 1,
      },
      'tenant:b': {
        '(expires)': true,
        'bucket:tenant': '1000122223:1000000000:0',
        idle: '1',
        'normal.entitled': 2_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 1,
        'normal.score': null,
        'normal.virtual': 2_000_000,
        'state.waiting': null,
      },
    })
    expect(shortly(early)).toBe('')
    expect(shortly(due.reply)).toBe('a3')
    expect(due.changes).toEqual({
      'claim:1000122223': {
        'normal:default:1000000002:a': '|rs|SEND|||3',
      },
      'client:me': {
        '3': '3',
      },
      'lane:normal:default:a': null,
      leases: {
        '1000122223:me': 1_015_122_223,
      },
      limits: {
        'tenant/tenant/jitter': '100000:1000000000:4:0:1000000000',
      },
      parked: null,
      queue: {
        'state.fence': 1_000_122_223,
        'state.running': 4,
        'state.running:normal': 4,
        'state.turns': 3,
        'state.virtual:normal': 3_000_000,
        'state.waiting': null,
      },
      running: {
        a: '3',
      },
      'tenant:a': {
        '(expires)': true,
        'bucket:tenant': '1000366669:1000122223:0',
        idle: '1',
        'normal.entitled': 2_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 3,
        'normal.score': null,
        'normal.since': 1_000_122_223,
        'normal.virtual': 3_000_000,
        parked: null,
        'state.waiting': null,
      },
    })
  })

  it('ends the claim when the queue’s bucket is empty, and touches nobody', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 3)
    await store.submit('b', 3)
    await store.claim(5)

    const { reply, changes } = await store.changesOf(() => store.claim(5, { idleForMs: 60_000 }))

    expect(reply).toMatchObject({ word: 'idle', jobs: [], waitMs: 122.223, holdsAlarm: true })
    expect(changes).toEqual({
      'client:me': { 2: '2' },
      idle: { me: 1_060_000_000 },
      alarm: '1000122223:me',
    })
  })

  it('closes a level whose bucket is empty, and serves the next', async () => {
    await store.begin({ limits: { levels: { high: bucket } } })
    await store.submit('a', 3, { level: 'high' })
    await store.submit('a', 1, { level: 'low' })

    const { reply, changes } = await store.changesOf(() => store.claim(5))

    expect(shortly(reply)).toBe('a1 a2 a1')
    expect(changes.limits).toEqual({
      'high/high': '1000244446:1000000000:0',
      'high/high/jitter': '100000:1000000000:2:0:1000000000',
    })
  })

  it('charges all limits or none', async () => {
    await store.begin({ limits: { queue: { ...bucket, limit: 100, burst: 50 }, tenant: bucket } })
    await store.submit('a', 3)
    await store.claim(5)
    const before = (await store.dump()).limits

    await store.claim(5)

    expect((await store.dump()).limits).toEqual(before)
  })

  it('gives the permits of a stale grant back, and the job its place at the front', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 3)
    const claim = await store.claim(2)

    const { changes } = await store.changesOf(() => store.finish(claim, { outcome: 'returned' }))

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '|rs|SEND|||1',
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      'front:normal:default:a': ['normal:default:1000000000:a', 'normal:default:1000000001:a'],
      leases: null,
      limits: {
        'queue/queue': '1000000000:1000000000:0',
        'queue/queue/jitter': '100000:1000000000:2:2:1000000000',
      },
      queue: {
        returned: '2',
        'state.running': null,
        'state.running:normal': null,
        'state.waiting': 3,
      },
      running: null,
      'tenant:a': {
        'state.front': 2,
        'state.waiting': 3,
      },
    })
    expect(shortly(await store.claim(5))).toBe('a1 a2')
  })

  it('does not give permits back that later grants were spaced by', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 3)
    const first = await store.claim(1)
    await store.claim(1)
    const before = await store.client.hget(store.keys().limits, 'queue/queue')

    await store.finish(first, { outcome: 'returned' })

    expect(await store.client.hget(store.keys().limits, 'queue/queue')).toBe(before)
  })

  it('doubles its jitter when more than one grant in fifty goes stale, and halves it after a calm minute', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 50)
    const jitter = async () => (await store.client.hget(store.keys().limits, 'queue/queue/jitter'))?.split(':')[0]

    await store.finish(await store.claim(1), { outcome: 'returned' })
    store.now += 10_000_000
    await store.finish(await store.claim(1), { outcome: 'succeeded' })
    const stale = await jitter()
    for (let i = 0; i < 8; i++) {
      store.now += 10_000_000
      await store.finish(await store.claim(1), { outcome: 'succeeded' })
    }

    expect(stale).toBe('200000')
    expect(await jitter()).toBe('100000')
  })

  it('holds a tenant at its concurrency and takes it back in line when a slot is free', async () => {
    await store.begin({ limits: { tenant: { kind: 'concurrency', max: 2 } } })
    await store.submit('a', 5)

    const claimed = await store.changesOf(() => store.claim(5))
    const [first] = finishedAs(claimed.reply, { outcome: 'succeeded' })
    if (!first) throw new Error('jobs were to be claimed')
    const freed = await store.changesOf(() => store.claim(5, { finished: [first] }))

    expect(shortly(claimed.reply)).toBe('a1 a2')
    expect(claimed.changes.parked).toEqual({ a: 9e15 })
    expect(shortly(freed.reply)).toBe('a3')
    expect(freed.changes).toEqual({
      'claim:1000000000': {
        'normal:default:1000000000:a': null,
      },
      'claim:1000000001': {
        'normal:default:1000000002:a': '|rs|SEND|||3',
      },
      'client:me': {
        '2': '2',
      },
      'lane:normal:default:a': ['|rs|SEND|||4', '|rs|SEND|||5'],
      leases: {
        '1000000001:me': 1_015_000_000,
      },
      queue: {
        parked: '2',
        'state.clock': 1_000_000_003,
        'state.fence': 1_000_000_001,
        'state.turns': 2,
        'state.virtual:normal': 3_000_000,
        'state.waiting': 2,
        succeeded: '1',
      },
      'tenant:a': {
        'normal.entitled': 3_000_000,
        'normal.received': 3,
        'normal.score': 1_000_000_003,
        'normal.virtual': 3_000_000,
        'state.waiting': 2,
      },
    })
  })

  it.each(['queue', 'level'] as const)('holds a %s at its concurrency', async (scope) => {
    const limit = { kind: 'concurrency', max: 2 } as const
    await store.begin({ limits: scope === 'queue' ? { queue: limit } : { levels: { normal: limit } } })
    await store.submit('a', 2)
    await store.submit('b', 2)

    const claim = await store.claim(5)
    const full = await store.claim(5)
    await store.finish(claim, { outcome: 'succeeded' })

    expect(shortly(claim)).toBe('a1 a2')
    expect(shortly(full)).toBe('')
    expect(shortly(await store.claim(5))).toBe('b1 b2')
  })

  it('frees the slots of a lease that ran out', async () => {
    await store.begin({ limits: { queue: { kind: 'concurrency', max: 1 } } })
    await store.submit('a', 2)
    await store.claim(1)
    const full = await store.claim(1)
    store.now += 15_000_000

    expect(shortly(full)).toBe('')
    expect(shortly(await store.claim(1))).toBe('a1')
    expect(await store.counts('running')).toEqual([1])
  })

  it('stays closed for a window after another server has answered', async () => {
    await store.begin({ limits: { queue: bucket } })
    await store.submit('a', 3)
    await store.claim(1)
    store.serverId = 'server-2'
    store.now += 5_000_000

    const restarted = await store.changesOf(() => store.claim(1))
    store.now += 1_099_999
    const closed = await store.claim(1)
    store.now += 1

    expect(shortly(restarted.reply)).toBe('')
    expect(restarted.changes).toEqual({
      'client:me': {
        '2': '2',
      },
      queue: {
        server: 'server-2',
        'state.restarted_at': 1_005_000_000,
        'state.restarts': 1,
      },
    })
    expect(shortly(closed)).toBe('')
    expect(shortly(await store.claim(1))).toBe('a2')
  })
})

describe('finishing', () => {
  async function finishOne(finish: Parameters<ScriptStore['finish']>[1]) {
    await store.submit('a', 1)
    const claim = await store.claim(1)
    store.now += 2_000_000
    return store.changesOf(() => store.finish(claim, finish))
  }

  it('leaves nothing of a job that succeeded but counts', async () => {
    const { reply, changes } = await finishOne({ outcome: 'succeeded' })

    expect(reply).toEqual({
      fence: '0',
      freshMs: undefined,
      hasDuties: false,
      holdsAlarm: false,
      jobs: [],
      kept: [],
      stale: [],
      waitMs: undefined,
      word: 'idle',
    })
    expect(changes).toEqual({
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      leases: null,
      queue: {
        'state.running': null,
        'state.running:normal': null,
        succeeded: '1',
      },
      running: null,
    })
  })

  it('puts a failed job aside until its next try', async () => {
    const { changes } = await finishOne({ outcome: 'retry', delayMs: 1_500, error: ERROR })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '1,0,0,0,retry,{"name":"E","message":"m"}|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_003_500_000,
      },
      events: ['type job.failed tenant a job normal:default:1000000000:a reason m'],
      leases: null,
      queue: {
        retried: '1',
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
      },
    })
  })

  it('puts a throttled job aside without costing it a retry', async () => {
    const { changes } = await finishOne({ outcome: 'throttled', delayMs: 3_000 })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,0,1,0,upstream,|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_005_000_000,
      },
      leases: null,
      queue: {
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
        throttled: '1',
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
      },
    })
  })

  it('puts a job of unknown type aside, and remembers since when it is unknown', async () => {
    const { changes } = await finishOne({ outcome: 'unknown', delayMs: 30_000 })

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,0,0,1002000,unknown-type,|rs|SEND|||1',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      delayed: {
        'normal:default:1000000000:a': 1_032_000_000,
      },
      leases: null,
      queue: {
        'state.delayed': 1,
        'state.running': null,
        'state.running:normal': null,
        unknown_type: '1',
      },
      running: null,
      'tenant:a': {
        '(expires)': null,
        idle: null,
        'state.delayed': 1,
      },
    })
  })

  it('keeps a dead letter with its reason and error', async () => {
    const { changes } = await finishOne({ outcome: 'dead', reason: 'discarded', error: ERROR })

    expect(changes).toEqual({
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      dead: {
        'normal:default:1000000000:a': 1_002_000_000,
      },
      'dead:jobs': {
        'normal:default:1000000000:a': '1002000,discarded|1,0,0,0,discarded,{"name":"E","message":"m"}|rs|SEND|||1',
      },
      events: ['type job.dead tenant a job normal:default:1000000000:a reason discarded'],
      leases: null,
      queue: {
        failed: '1',
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
    })
  })

  it('trims dead letters past their time, and counts them', async () => {
    await store.begin({ keepDeadLettersMs: 1_000 })
    await finishOne({ outcome: 'dead', reason: 'failed', error: ERROR })

    const { changes } = await finishOne({ outcome: 'dead', reason: 'failed', error: ERROR })

    expect(Object.keys(changes.dead ?? {})).toHaveLength(2)
    expect(await store.client.zcard(store.keys().dead)).toBe(1)
    expect(await store.client.hlen(store.keys().deadJobs)).toBe(1)
    expect(await store.counts('deadLettersExpired')).toEqual([1])
  })

  it('puts a released job back to the front of its lane', async () => {
    await store.submit('a', 3)
    const claim = await store.claim(2)

    const { changes } = await store.changesOf(() => store.finish(claim, { outcome: 'released' }))

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '|rs|SEND|||1',
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      'front:normal:default:a': ['normal:default:1000000000:a', 'normal:default:1000000001:a'],
      leases: null,
      queue: {
        released: '2',
        'state.running': null,
        'state.running:normal': null,
        'state.waiting': 3,
      },
      running: null,
      'tenant:a': {
        'state.front': 2,
        'state.waiting': 3,
      },
    })
    expect(shortly(await store.claim(5))).toBe('a1 a2 a3')
  })

  it('finishes and claims in one call', async () => {
    await store.submit('a', 2)
    const claim = await store.claim(1)

    const { reply, changes } = await store.changesOf(() =>
      store.claim(1, { finished: finishedAs(claim, { outcome: 'succeeded' }) }),
    )

    expect(shortly(reply)).toBe('a2')
    expect(changes).toEqual({
      'claim:1000000000': null,
      'claim:1000000001': {
        'normal:default:1000000001:a': '|rs|SEND|||2',
      },
      'client:me': {
        '2': '2',
      },
      'lane:normal:default:a': null,
      leases: {
        '1000000000:me': null,
        '1000000001:me': 1_015_000_000,
      },
      queue: {
        'state.fence': 1_000_000_001,
        'state.virtual:normal': 2_000_000,
        'state.waiting': null,
        'state.weights:normal': null,
        succeeded: '1',
      },
      'ready:normal': null,
      'since:normal': null,
      'tenant:a': {
        '(expires)': true,
        idle: '1',
        'normal.entitled': 2_000_000,
        'normal.lane': null,
        'normal.lanes': null,
        'normal.received': 2,
        'normal.score': null,
        'normal.used': null,
        'normal.virtual': 2_000_000,
        'state.waiting': null,
      },
    })
  })

  it('refuses what is no longer the caller’s, by its position, and finishes the rest', async () => {
    await store.submit('a', 2)
    const claim = await store.claim(2)
    const [first, second] = finishedAs(claim, { outcome: 'succeeded' })
    if (!first || !second) throw new Error('two jobs were to be claimed')

    const stale = await store.changesOf(() => store.claim(0, { finished: [{ ...first, fence: '7' }] }))
    const mixed = await store.claim(0, { finished: [{ ...first, fence: '7' }, second] })

    expect(stale.reply.stale).toEqual([0])
    expect(stale.changes).toEqual({ 'client:me': { 2: '2' } })
    expect(mixed.stale).toEqual([0])
    expect(await store.counts('succeeded', 'running')).toEqual([1, 1])
  })

  it('finishes a claim that is told of as a whole, and what is left of it when its lease has been taken back', async () => {
    await store.submit('a', 4)
    const [whole, lost] = [await store.claim(2), await store.claim(2)]
    const told = [...finishedAs(whole, { outcome: 'succeeded' }), ...finishedAs(lost, { outcome: 'succeeded' })]
    const untold = new Map([whole, lost].map(({ fence }) => [fence, 2]))
    await store.client.hdel(`${keyPrefix('test', 'q')}claim:${lost.fence}`, told[2]?.jobKey ?? '')

    const { reply, changes } = await store.changesOf(() => store.claim(0, { finished: told, untold }))

    expect(reply.stale).toEqual([2])
    expect(changes).toMatchObject({ [`claim:${whole.fence}`]: null, [`claim:${lost.fence}`]: null, leases: null })
    expect(await store.counts('succeeded', 'running')).toEqual([3, 1])
  })

  it('counts a job that is told twice in one call once, as it was told first; the repeat is stale', async () => {
    await store.submit('a', 3)
    const claim = await store.claim(3)
    const [first, second] = finishedAs(claim, { outcome: 'succeeded' })
    if (!first || !second) throw new Error('three jobs were to be claimed')
    const released = { ...second, finish: { outcome: 'released' } } as const

    const { stale } = await store.claim(0, {
      finished: [first, second, first, released],
      untold: new Map([[claim.fence, 3]]),
    })

    expect(stale).toEqual([2, 3])
    expect(await store.counts('succeeded', 'released', 'running')).toEqual([2, 0, 1])
  })
})

describe('what is due', () => {
  it('brings a delayed job back before the fresh ones', async () => {
    await store.submit('a', 2)
    await store.submit('a', 0, { kind: 'later', entries: ['+5000', '', record('later')] })
    store.now += 5_000

    const { reply, changes } = await store.changesOf(() => store.claim(2))

    expect(shortly(reply)).toBe('a"later" a1')
    expect(changes).toEqual({
      aside: null,
      'claim:1000005000': {
        'normal:default:01000000002:a': '|rs|SEND|||"later"',
        'normal:default:1000000000:a': '|rs|SEND|||1',
      },
      'client:me': {
        '(expires)': true,
        '1': '1',
      },
      delayed: null,
      'lane:normal:default:a': ['|rs|SEND|||2'],
      leases: {
        '1000005000:me': 1_015_005_000,
      },
      queue: {
        'state.delayed': null,
        'state.fence': 1_000_005_000,
        'state.running': 2,
        'state.running:normal': 2,
        'state.turns': 1,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
      },
      running: {
        a: '2',
      },
      'tenant:a': {
        'normal.longest': 5000,
        'normal.received': 2,
        'normal.since': 1_000_005_000,
        'normal.used': 2000,
        'state.delayed': null,
        'state.waiting': 1,
      },
    })
  })

  it('puts the jobs of a lease that ran out at the front again and counts a stall', async () => {
    await store.submit('a', 3)
    await store.claim(2)
    store.now += 15_000_000

    const { changes } = await store.changesOf(() => store.claim(0))

    expect(changes).toEqual({
      aside: {
        'normal:default:1000000000:a': '0,1,0,0,stall,|rs|SEND|||1',
        'normal:default:1000000001:a': '0,1,0,0,stall,|rs|SEND|||2',
      },
      'claim:1000000000': null,
      'client:me': {
        '2': '2',
      },
      events: [
        'type job.stalled tenant a job normal:default:1000000000:a reason lease',
        'type job.stalled tenant a job normal:default:1000000001:a reason lease',
      ],
      'front:normal:default:a': ['normal:default:1000000000:a', 'normal:default:1000000001:a'],
      leases: null,
      queue: {
        stalled: '2',
        'state.running': null,
        'state.running:normal': null,
        'state.waiting': 3,
      },
      running: null,
      'tenant:a': {
        'state.front': 2,
        'state.waiting': 3,
      },
    })
    expect(shortly(await store.claim(1))).toBe('a1')
  })

  it('lets a stalled job wait longer each time, and makes it a dead letter after maxStalls', async () => {
    await store.begin({ maxStalls: 2 })
    await store.submit('a', 1)
    await store.claim(1)
    store.now += 15_000_000
    await store.claim(1)
    store.now += 15_000_000

    const second = await store.changesOf(() => store.claim(1))
    store.now += 1_000_000
    const back = await store.claim(1)
    store.now += 15_000_000
    const third = await store.changesOf(() => store.claim(1))

    expect(shortly(second.reply)).toBe('')
    expect(second.changes.delayed).toEqual({ 'normal:default:1000000000:a': 1_031_000_000 })
    expect(shortly(back)).toBe('a1')
    expect(third.changes).toEqual({
      'claim:1031000000': null,
      'client:me': {
        '5': '5',
      },
      dead: {
        'normal:default:1000000000:a': 1_046_000_000,
      },
      'dead:jobs': {
        'normal:default:1000000000:a': '1046000,stalled|0,3,0,0,stall,|rs|SEND|||1',
      },
      events: [
        'type job.stalled tenant a job normal:default:1000000000:a reason lease',
        'type job.dead tenant a job normal:default:1000000000:a reason stalled',
      ],
      leases: null,
      queue: {
        failed: '1',
        stalled: '3',
        'state.running': null,
        'state.running:normal': null,
      },
      running: null,
    })
  })

  it('drops a cancelled job of a lease that ran out', async () => {
    await store.submit('a', 1)
    await store.claim(1)
    await cancelJob(store.requests('canceler'), addressOf('normal:default:1000000000:a', ''), store.nowUs)
    store.now += 15_000_000

    await store.claim(1)

    expect(await store.counts('canceled', 'stalled', 'running')).toEqual([1, 0, 0])
  })
})

describe('waiting', () => {
  it('registers an idle client, and gives it the alarm for the next instant', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })

    const { reply, changes } = await store.changesOf(() => store.claim(1, { idleForMs: 30_000 }))

    expect(reply).toMatchObject({ word: 'idle', waitMs: 3_000, holdsAlarm: true })
    expect(changes).toEqual({
      'client:me': { 1: '1', '(expires)': true },
      idle: { me: 1_030_000_000 },
      alarm: '1003000000:me',
    })
  })

  it('gives the alarm to one client, and to another for an earlier instant', async () => {
    await store.submit('a', 0, { kind: 'later', entries: ['+3000000', '', record(1)] })
    await store.claim(1, { idleForMs: 30_000 }, 'first')

    const second = await store.claim(1, { idleForMs: 30_000 }, 'second')
    await store.submit('a', 0, { kind: 'later', entries: ['+1000000', '', record(2)] })
    const earlier = await store.claim(1, { idleForMs: 30_000 }, 'second')

    expect(second).toMatchObject({ waitMs: 3_000, holdsAlarm: false })
    expect(earlier).toMatchObject({ waitMs: 1_000, holdsAlarm: true })
  })

  it('knows no instant when nothing is due', async () => {
    expect(await store.claim(1, { idleForMs: 30_000 })).toMatchObject({ word: 'idle', waitMs: undefined })
  })

  it('wakes the next client when it cannot take everything itself', async () => {
    await store.submit('a', 2)
    await store.claim(1, { levels: 'high', idleForMs: 30_000 }, 'sleeper')

    const { changes } = await store.changesOf(() => store.claim(1, { idleForMs: 30_000 }))

    expect(changes).toMatchObject({ 'wake:sleeper': ['work'], idle: null })
  })

  it('wakes nobody when nothing is left', async () => {
    await store.submit('a', 1)
    await store.claim(1, { levels: 'high', idleForMs: 30_000 }, 'sleeper')
    const claim = await store.claim(1, { idleForMs: 30_000 })

    const { changes } = await store.changesOf(() =>
      store.claim(0, { idleForMs: 30_000, finished: finishedAs(claim, { outcome: 'succeeded' }) }),
    )

    expect(changes).not.toHaveProperty('wake:sleeper')
  })
})

describe('a repeated request', () => {
  it('is answered from the leases under its number and changes nothing', async () => {
    await store.submit('a', 3)
    const first = await store.claim(2)
    store.repeatFrom1()

    const { reply, changes } = await store.changesOf(() => store.claim(2))

    expect({ ...reply, jobs: jobsOf(reply).sort(byKey) }).toEqual({ ...first, jobs: jobsOf(first).sort(byKey) })
    expect(changes).toEqual({})
  })

  it('finishes nothing twice', async () => {
    await store.submit('a', 1)
    const claim = await store.claim(1, {}, 'another')
    const finished = finishedAs(claim, { outcome: 'retry', delayMs: 1_000, error: ERROR })
    const first = await store.claim(0, { finished })
    store.repeatFrom1()

    const { reply, changes } = await store.changesOf(() => store.claim(0, { finished }))

    expect(reply).toEqual(first)
    expect(changes).toEqual({})
  })

  const byKey = (a: { jobKey: string }, b: { jobKey: string }) => (a.jobKey < b.jobKey ? -1 : 1)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(store.claim(1)).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('finishes and claims while Redis is out of memory', async () => {
  await store.submit('a', 2)

  const second = await store.outOfMemory(async () => {
    const first = await store.claim(1)
    return store.claim(1, { finished: finishedAs(first, { outcome: 'retry', delayMs: 1_000, error: ERROR }) })
  })

  expect(shortly(second)).toBe('a2')
  expect(await store.counts('running', 'delayed')).toEqual([1, 1])
})
