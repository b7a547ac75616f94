import { beforeEach, describe, expect, it } from 'vitest'
import { finishedAs, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { QueueOptions } from '../../engine/queue-options.ts'
import type { ClaimReply } from './finish-and-claim.ts'

const store = useScriptStore()

describe('limits', () => {
  const bucket = { kind: 'bucket', limit: 10, windowMs: 1_000, burst: 2, jitterMs: 100 } as const

  describe('a fast bucket that is asked late', () => {
    // A permit every 2.1 ms, five at once; it reaches 2.5 ms back.
    const fast = { kind: 'bucket', limit: 500, windowMs: 1_000, burst: 5, jitterMs: 50 } as const
    beforeEach(async () => {
      await store.begin({ limits: { queue: fast } })
      await store.submit('a', 100)
      await store.claim(50)
    })

    const countOf = (reply: ClaimReply) => shortly(reply).split(' ').length

    it('grants what came free meanwhile too, and that keeps for so much less', async () => {
      // Six intervals after the burst was used up: five were saved, and one more came free since, 2.117 ms ago.
      store.now += 6 * 2_117

      const late = await store.claim(50)
      store.now += 2_117
      const next = await store.claim(50)

      expect([countOf(late), late.freshMs]).toEqual([6, 30 - 2.117])
      expect([countOf(next), next.freshMs]).toEqual([1, 30])
    })

    it('grants after a rest what came free within its reach, not all that did', async () => {
      store.now += 60_000

      const claimed = await store.claim(50)

      // One interval fits into 2.5 ms.
      expect([countOf(claimed), claimed.freshMs]).toEqual([6, 27.883])
    })

    it('grants less than a burst after a rest as always', async () => {
      store.now += 60_000

      expect(await store.claim(4)).toMatchObject({ freshMs: 30 })
    })
  })

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
        claimed: '3',
        'denied:tenant/tenant/rate': '1',
        'granted:tenant/tenant': '3',
        parked: '1',
        'state.clock': 1_000_000_066,
        'state.fence': 1_000_000_000,
        'state.running': 3,
        'state.running:normal': 3,
        'state.turns': 2,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
        'state.weights:normal': null,
        'state.snapshot_due': 1_010_000_000,
        'state.starts': 3,
        'state.weights:parked': 1000,
      },
      'ready:normal': null,
      running: {
        a: '2',
        b: '1',
      },
      'since:normal': null,
      'tenant:a': {
        'normal.reached': 2000,
        'bucket:tenant': '1000244446:1000000000:0',
        'normal.entitled': 1_000_000,
        'normal.received': 2,
        'normal.score': 1_000_000_066,
        'normal.virtual': 1_000_000,
        parked: 'tenant',
        'state.waiting': 1,
        'state.throttled': 8_589_935_592,
      },
      'tenant:b': {
        'normal.reached': 1000,
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
        claimed: '4',
        'granted:tenant/tenant': '4',
        'state.fence': 1_000_122_223,
        'state.reached:normal': 5000,
        'state.round:normal': 1_000_000_066,
        'state.running': 4,
        'state.running:normal': 4,
        'state.turns': 3,
        'state.virtual:normal': 3_000_000,
        'state.waiting': null,
        unparked: '1',
        'state.starts': 4,
        'state.weights:parked': null,
      },
      running: {
        a: '3',
      },
      'tenant:a': {
        'normal.reached': 3000,
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
      queue: { 'denied:queue/queue/rate': '2' },
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
    const wide = { ...bucket, limit: 100, burst: 50 }
    const chargedBy = async (limits: NonNullable<QueueOptions['limits']>, jobs: number) => {
      await store.begin({ limits })
      await store.submit('a', jobs)
      expect(shortly(await store.claim(5))).toBe('a1 a2')
      return store.client.hget(store.keys().limits, 'queue/queue')
    }

    const ofThree = await chargedBy({ queue: wide, tenant: bucket }, 3)

    expect(ofThree).toBe(await chargedBy({ queue: wide, tenant: bucket }, 2))
    expect(ofThree).toBe(await chargedBy({ queue: wide }, 2))
    // The other way round: what the queue refuses is not charged to the tenant.
    await chargedBy({ queue: bucket, tenant: wide }, 3)
    const tenant = (await store.dump()).limits
    await chargedBy({ queue: bucket, tenant: wide }, 2)
    expect((await store.dump()).limits).toEqual(tenant)
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
        'pace.uncounted': 2,
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
        'state.round:normal': 1_000_000_065,
        'state.reached:normal': 5000,
        unparked: '1',
        claimed: '3',
        'denied:tenant/tenant/concurrency': '2',
        'granted:tenant/tenant': '3',
        parked: '2',
        'state.clock': 1_000_000_129,
        'state.fence': 1_000_000_001,
        'state.turns': 2,
        'state.virtual:normal': 3_000_000,
        'state.waiting': 2,
        succeeded: '1',
        'state.starts': 3,
      },
      'tenant:a': {
        'normal.reached': 3000,
        'normal.entitled': 3_000_000,
        'normal.received': 3,
        'normal.score': 1_000_000_129,
        'normal.virtual': 3_000_000,
        'state.waiting': 2,
        'state.throttled': 17_179_870_184,
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
        'denied:queue/queue/restart': '1',
        server: 'server-2',
        'state.restarted_at': 1_005_000_000,
        'state.restarts': 1,
      },
    })
    expect(shortly(closed)).toBe('')
    expect(shortly(await store.claim(1))).toBe('a2')
  })

  describe('with a window of more than a minute', () => {
    // A permit every 72 s, two at once.
    const slow = { kind: 'bucket', limit: 51, windowMs: 3_600_000, burst: 2, jitterMs: 0 } as const
    const stored = () => store.client.hget(store.keys().limits, 'queue/queue')

    it('goes on two seconds later after a restart, also when it had granted nothing', async () => {
      await store.begin({ limits: { queue: slow } })
      await store.submit('a', 3)
      store.serverId = 'server-2'

      const { word, fence } = await store.claim(1)

      expect(word).toBe('claimed')
      expect(await stored()).toBe(`${store.now + 74_000_000}:${fence}:1`)
    })

    it('has its burst spent where the store had lost its queue', async () => {
      await store.empty()
      await store.register({ limits: { queue: slow } }, '1')
      await store.submit('a', 3)

      const early = await store.claim(1, { idleForMs: 100_000 })
      store.now += 2_000_000

      expect(early).toMatchObject({ jobs: [], waitMs: 2_000 })
      expect(shortly(await store.claim(2))).toBe('a1')
    })

    it('has it spent also where a process that did not know the queue was granted something first', async () => {
      await store.begin({ limits: { queue: slow } })
      await store.submit('a', 3)
      await store.claim(1, { leaseMs: 3_600_000 })
      store.now += 60_000_000
      await store.register({ limits: { queue: slow } }, '900000000')

      const early = await store.claim(1, { idleForMs: 100_000 })
      store.now += 2_000_000

      expect(early).toMatchObject({ jobs: [], waitMs: 2_000 })
      expect(shortly(await store.claim(2))).toBe('a2')
    })
  })
})
