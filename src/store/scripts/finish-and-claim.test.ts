import { describe, expect, it } from 'vitest'
import { finishedAs, jobsOf, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'

const store = useScriptStore()

const ERROR = '{"name":"E","message":"m"}'

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
      hasTicks: false,
      kept: [],
      isToRecord: true,
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
        claimed: '2',
        'state.fence': 1_000_000_000,
        'state.running': 2,
        'state.running:normal': 2,
        'state.turns': 1,
        'state.virtual:normal': 2_000_000,
        'state.waiting': 1,
        'state.snapshot_due': 1_010_000_000,
        'state.starts': 2,
      },
      running: {
        a: '2',
      },
      'tenant:a': {
        'normal.reached': 2000,
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
        claimed: '1',
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:normal': 1,
        'state.turns': 1,
        'state.virtual:normal': 1_000_000,
        'state.waiting': null,
        'state.weights:normal': null,
        'state.starts': 1,
      },
      'ready:normal': null,
      running: {
        a: '1',
      },
      'since:normal': null,
      'tenant:a': {
        'normal.reached': 1000,
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
        claimed: '1',
        'state.fence': 1_000_000_000,
        'state.running': 1,
        'state.running:high': 1,
        'state.turns': 1,
        'state.virtual:high': 1_000_000,
        'state.waiting': null,
        'state.weights:high': null,
        'state.starts': 1,
      },
      'ready:high': null,
      running: {
        a: '1',
      },
      'since:high': null,
      'tenant:a': {
        'high.reached': 1000,
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
        'state.entry:high': 1_000_000_003,
        released: '1',
        'state.clock': 1_000_000_003,
        'state.running': null,
        'state.running:high': null,
        'state.waiting': 1,
        'state.weights:high': 1000,
        'state.starts': null,
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
        'pace.received': 1,
        'pace.uncounted': 1,
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
    await store.client.zadd(store.keys().idle, store.now + 30_000_000, 'sleeper')

    const { changes } = await store.changesOf(() => store.claim(1, { idleForMs: 30_000 }))

    expect(changes).toMatchObject({ 'wake:sleeper': ['work'], idle: null })
  })

  it('wakes another when it comes by its alarm, though it is itself the last that went idle', async () => {
    await store.submit('a', 2, { kind: 'later', entries: ['+1000000', '', record(1), '+1000000', '', record(2)] })
    await store.claim(1, { idleForMs: 30_000 }, 'sleeper')
    store.now += 500_000
    await store.claim(1, { idleForMs: 30_000 }, 'me')
    store.now += 500_000

    const { changes } = await store.changesOf(() => store.claim(1, { idleForMs: 30_000 }, 'me'))

    expect(changes).toMatchObject({ 'wake:sleeper': ['work'], idle: null })
  })

  it('takes an alarm whose instant is long over for one that nobody holds', async () => {
    await store.claim(1, { idleForMs: 30_000 }, 'holder')
    await store.submit('a', 1, { kind: 'later', entries: ['+9000000000', '', record(1)] })
    await store.client.set(store.keys().alarm, `${store.now - 100_001}:holder`)

    expect(await store.claim(1, { idleForMs: 30_000 })).toMatchObject({ holdsAlarm: true })
  })

  it('wakes nobody when nothing is left', async () => {
    await store.submit('a', 1)
    const claim = await store.claim(1, { idleForMs: 30_000 })
    await store.client.zadd(store.keys().idle, store.now + 30_000_000, 'sleeper')

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

    expect(reply).toEqual(first)
    expect(changes).toEqual({})
  })

  it('has the jobs of each lane in their order, though they are too long for Redis to keep it', async () => {
    await store.begin({ quantum: 20 })
    const entries = (from: string) => Array.from({ length: 20 }, (_, index) => record(`${from.repeat(80)}${index}`))
    await store.submitLines(['b', 'a'].map((tenant) => ({ ...line, tenant, entries: entries(tenant) })))
    const first = jobsOf(await store.claim(40))
    store.repeatFrom1()

    const again = jobsOf(await store.claim(40))

    const of = (jobs: typeof first, tenant: string) => jobs.filter(({ jobKey }) => jobKey.endsWith(`:${tenant}`))
    for (const tenant of ['a', 'b']) expect(of(again, tenant)).toEqual(of(first, tenant))
    expect(again).toHaveLength(40)
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

  const line = { level: 'normal', lane: 'default', basePriority: undefined, kind: 'fresh' } as const
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

describe('a claim of a process that registered', () => {
  it('goes on while the store knows the queue since then', async () => {
    const since = await store.register({ limits: { queue: '500/s' } })
    await store.submit('a', 1)

    const claimed = await store.claimKnowing(since)

    expect(shortly(claimed)).toBe('a1')
  })

  it('is told to register when the store came to know it later, and takes nothing', async () => {
    await store.submit('a', 1)

    const { changes } = await store.changesOf(() =>
      expect(store.claimKnowing('900000000')).rejects.toThrow('unregistered'),
    )

    expect(changes).toEqual({})
  })

  it('goes on where an older version has made the queue known, which does not say since when', async () => {
    await store.submit('a', 1)
    await store.client.eval(
      `local packed = cmsgpack.unpack(redis.call('HGET', KEYS[1], 'settings'))
       packed.known_since = nil
       return redis.call('HSET', KEYS[1], 'settings', cmsgpack.pack(packed))`,
      1,
      store.keys().queue,
    )

    const claimed = await store.claimKnowing('900000000')

    expect(shortly(claimed)).toBe('a1')
  })
})
