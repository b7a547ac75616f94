import { expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { StoreOutOfMemoryError } from '../../errors.ts'
import { changeTenant } from './change-tenant.ts'
import { submitJobs } from './submit-jobs.ts'

const store = useScriptStore()

it('puts jobs at the end of their lane and their tenant in line', async () => {
  const { reply, changes } = await store.changesOf(() => store.submit('a', 2))

  expect(reply).toEqual({
    accepted: 2,
    duplicates: 0,
    firsts: ['1000000000'],
    full: [],
    closed: [],
  })
  expect(changes).toEqual({
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    'lane:normal:default:a': ['|rs|SEND|||1', '|rs|SEND|||2'],
    queue: {
      'state.entry:normal': 1_000_000_001,
      'state.clock': 1_000_000_001,
      'state.waiting': 2,
      'state.weights:normal': 1000,
      submitted: '2',
      'state.active_since': 1_000_000_000,
      'state.slot': 200,
    },
    'ready:normal': {
      a: 1_000_000_001,
    },
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      'normal.lane': 'default',
      'normal.lanes': 1,
      'normal.score': 1_000_000_001,
      'normal.sequence': 1_000_000_002,
      'normal.since': 1_000_000_000,
      'state.total': 2,
      'state.waiting': 2,
      'pace.active_since': 1_000_000_000,
      'pace.slot': 200,
    },
  })
})

it('takes a submit of nothing', async () => {
  const reply = await submitJobs(store.requests(), [], { nowUs: store.nowUs })

  expect(reply).toMatchObject({ accepted: 0, firsts: [] })
})

it('numbers the jobs of a lane without gaps, and leaves the tenant its place in line', async () => {
  await store.submit('a', 2)
  store.now += 5_000

  const { reply, changes } = await store.changesOf(() => store.submit('a', 1))

  expect(reply.firsts).toEqual(['1000000002'])
  expect(changes).toEqual({
    'client:producer': {
      '2': '2',
    },
    'lane:normal:default:a': ['|rs|SEND|||1', '|rs|SEND|||2', '|rs|SEND|||1'],
    queue: {
      'state.waiting': 3,
      submitted: '3',
    },
    'tenant:a': {
      'normal.sequence': 1_000_000_003,
      'state.total': 3,
      'state.waiting': 3,
    },
  })
})

it('takes many tenants, levels and lanes at once', async () => {
  const line = { basePriority: undefined, kind: 'fresh' } as const

  const { reply, changes } = await store.changesOf(() =>
    store.submitLines([
      { ...line, tenant: 'a', level: 'high', lane: 'default', entries: [record(1)] },
      { ...line, tenant: 'a', level: 'high', lane: 'news', entries: [record(2)] },
      { ...line, tenant: 'a', level: 'low', lane: '!exact', entries: [record(3)] },
      { ...line, tenant: 'b', level: 'normal', lane: 'default', entries: [record(4)] },
    ]),
  )

  expect(reply.accepted).toBe(4)
  expect(changes).toEqual({
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    'lane:high:default:a': ['|rs|SEND|||1'],
    'lane:high:news:a': ['|rs|SEND|||2'],
    'lane:low:!exact:a': ['|rs|SEND|||3'],
    'lane:normal:default:b': ['|rs|SEND|||4'],
    'lanes:a': {
      'high:news': '1000000003',
      'low:!exact': '1000000004',
    },
    queue: {
      'state.entry:normal': 1_000_000_006,
      'state.entry:low': 1_000_000_004,
      'state.entry:high': 1_000_000_001,
      'state.clock': 1_000_000_006,
      'state.waiting': 4,
      'state.weights:high': 1000,
      'state.weights:low': 1000,
      'state.weights:normal': 1000,
      submitted: '4',
      'state.active_since': 1_000_000_000,
      'state.slot': 200,
    },
    'ready:high': {
      a: 1_000_000_001,
    },
    'ready:low': {
      a: 1_000_000_004,
    },
    'ready:normal': {
      b: 1_000_000_006,
    },
    'ring:high:a': ['news'],
    'since:high': {
      a: 1_000_000_000,
    },
    'since:low': {
      a: 1_000_000_000,
    },
    'since:normal': {
      b: 1_000_000_000,
    },
    'tenant:a': {
      'high.lane': 'default',
      'high.lanes': 2,
      'high.score': 1_000_000_001,
      'high.sequence': 1_000_000_001,
      'high.since': 1_000_000_000,
      'low.lane': '!exact',
      'low.lanes': 1,
      'low.score': 1_000_000_004,
      'low.since': 1_000_000_000,
      'state.total': 3,
      'state.waiting': 3,
      'pace.active_since': 1_000_000_000,
      'pace.slot': 200,
    },
    'tenant:b': {
      'normal.lane': 'default',
      'normal.lanes': 1,
      'normal.score': 1_000_000_006,
      'normal.sequence': 1_000_000_006,
      'normal.since': 1_000_000_000,
      'state.total': 1,
      'state.waiting': 1,
      'pace.active_since': 1_000_000_000,
      'pace.slot': 200,
    },
  })
})

it('takes a job with an id of its own once, within a call and over calls', async () => {
  const named = { kind: 'named', entries: ['aa01', record(1), 'aa02', record(2), 'aa01', record(3)] } as const

  const first = await store.changesOf(() => store.submit('a', 0, named))
  const second = await store.changesOf(() => store.submit('a', 0, named))

  expect(first.reply).toEqual({
    accepted: 2,
    duplicates: 1,
    firsts: ['1000000000'],
    full: [],
    closed: [],
  })
  expect(first.changes).toEqual({
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    ids: {
      '(expires)': true,
      '0': '2',
    },
    'ids:0:0:1': {
      '(expires)': true,
      aa01: 'normal:default:1000000000',
    },
    'ids:0:0:2': {
      '(expires)': true,
      aa02: 'normal:default:1000000001',
    },
    'lane:normal:default:a': ['|rs|SEND|||1', '|rs|SEND|||2'],
    queue: {
      'state.entry:normal': 1_000_000_001,
      'state.clock': 1_000_000_001,
      'state.waiting': 2,
      'state.weights:normal': 1000,
      submitted: '2',
      'state.active_since': 1_000_000_000,
      'state.slot': 200,
    },
    'ready:normal': {
      a: 1_000_000_001,
    },
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      'normal.lane': 'default',
      'normal.lanes': 1,
      'normal.score': 1_000_000_001,
      'normal.sequence': 1_000_000_002,
      'normal.since': 1_000_000_000,
      'state.total': 2,
      'state.waiting': 2,
      'pace.active_since': 1_000_000_000,
      'pace.slot': 200,
    },
  })
  expect(second.reply).toEqual({ accepted: 0, duplicates: 3, firsts: ['0'], full: [], closed: [] })
  expect(second.changes).toEqual({ 'client:producer': { 2: '2' } })
})

it('puts later jobs aside until their instant, without a place in line', async () => {
  const later = { kind: 'later', entries: ['+5000', '', record(1), '@2000000000', 'bb01', record(2)] } as const

  const { reply, changes } = await store.changesOf(() => store.submit('a', 0, later))

  expect(reply).toEqual({
    accepted: 2,
    duplicates: 0,
    firsts: ['01000000000'],
    full: [],
    closed: [],
  })
  expect(changes).toEqual({
    aside: {
      'normal:default:01000000000:a': '|rs|SEND|||1',
      'normal:default:01000000001:a': '|rs|SEND|||2',
    },
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    delayed: {
      'normal:default:01000000000:a': 1_000_005_000,
      'normal:default:01000000001:a': 2_000_000_000,
    },
    ids: {
      '(expires)': true,
      '0': '1',
    },
    'ids:0:0:1': {
      '(expires)': true,
      bb01: 'normal:default:01000000001',
    },
    queue: {
      'state.clock': 1_000_000_001,
      'state.delayed': 2,
      submitted: '2',
    },
    'tenant:a': {
      'state.delayed': 2,
      'state.total': 2,
    },
  })
})

it('wakes an idle client for a tenant that comes into line', async () => {
  await store.claim(1, { idleForMs: 1_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => store.submit('a', 1))

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('wakes an idle client for a later job only when nobody wakes before it anyway', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+10000000', '', record(1)] })
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const after = await store.changesOf(() =>
    store.submit('a', 0, { kind: 'later', entries: ['+20000000', '', record(2)] }),
  )
  const before = await store.changesOf(() =>
    store.submit('a', 0, { kind: 'later', entries: ['+5000000', '', record(3)] }),
  )

  expect(after.changes).not.toHaveProperty('wake:sleeper')
  expect(before.changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('wakes nobody for a tenant that stands in line already', async () => {
  await store.submit('a', 1)
  await store.client.zadd(store.keys().idle, store.now + 1_000_000, 'sleeper')

  const { changes } = await store.changesOf(() => store.submit('a', 1))

  expect(Object.keys(changes)).toEqual(['client:producer', 'lane:normal:default:a', 'queue', 'tenant:a'])
})

it('gives a tenant a head start', async () => {
  const { changes } = await store.changesOf(() => store.submit('a', 1, { basePriority: -500 }))

  expect(changes['ready:normal']).toEqual({ a: 999_500_001 })
  expect(changes['tenant:a']).toMatchObject({ base: '-500' })
})

it('keeps a paused tenant out of line', async () => {
  await changeTenant(store.requests(), 'a', { paused: true }, store.nowUs)

  const { changes } = await store.changesOf(() => store.submit('a', 1))

  expect(changes).toEqual({
    'client:producer': {
      '(expires)': true,
      '1': '1',
    },
    'lane:normal:default:a': ['|rs|SEND|||1'],
    queue: {
      'state.clock': 1_000_000_000,
      'state.waiting': 1,
      submitted: '1',
    },
    'tenant:a': {
      'normal.lane': 'default',
      'normal.lanes': 1,
      'normal.sequence': 1_000_000_001,
      'state.total': 1,
      'state.waiting': 1,
    },
  })
})

it('takes no more than the queue may hold, and says what did not fit', async () => {
  await store.begin({ maxPending: 3 })

  const { reply } = await store.changesOf(() =>
    store.submitLines([
      {
        tenant: 'a',
        level: 'normal',
        lane: 'default',
        basePriority: undefined,
        kind: 'fresh',
        entries: [record(1), record(2)],
      },
      {
        tenant: 'b',
        level: 'normal',
        lane: 'default',
        basePriority: undefined,
        kind: 'named',
        entries: ['cc01', record(3), 'cc02', record(4)],
      },
      {
        tenant: 'c',
        level: 'normal',
        lane: 'default',
        basePriority: undefined,
        kind: 'later',
        entries: ['+1', '', record(5)],
      },
    ]),
  )
  const again = await store.changesOf(() => store.submit('d', 1))

  expect(reply).toEqual({
    accepted: 3,
    duplicates: 0,
    firsts: ['1000000000', '1000000002', '0'],
    full: [
      {
        dealtWith: 1,
        line: 1,
      },
      {
        dealtWith: 0,
        line: 2,
      },
    ],
    closed: [],
  })
  expect(again.reply).toEqual({
    accepted: 0,
    duplicates: 0,
    firsts: ['0'],
    full: [{ line: 0, dealtWith: 0 }],
    closed: [],
  })
  expect(again.changes).toEqual({
    'client:producer': { 2: '2' },
    'tenant:d': expect.objectContaining({ '(expires)': true }),
  })
})

it('takes no more of one tenant than it may have, and others meanwhile', async () => {
  await store.begin({ maxPendingPerTenant: 2 })

  const a = await store.submit('a', 3)
  const b = await store.submit('b', 1)

  expect(a).toMatchObject({ accepted: 2, full: [{ line: 0, dealtWith: 2 }] })
  expect(b).toMatchObject({ accepted: 1, full: [] })
})

it('answers a repeated request from memory and changes nothing', async () => {
  const first = await store.submit('a', 2)
  store.repeatFrom1('producer')

  const { reply, changes } = await store.changesOf(() => store.submit('a', 2))

  expect(reply).toEqual(first)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(store.submit('a', 1)).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('is refused while Redis is out of memory, and changes nothing', async () => {
  const { changes } = await store.changesOf(() =>
    store.outOfMemory(() => expect(store.submit('a', 1)).rejects.toThrow(StoreOutOfMemoryError)),
  )

  expect(changes).toEqual({})
})

it('takes the time of the server unless one is given', async () => {
  const place = { tenant: 'a', level: 'normal', lane: 'default', basePriority: undefined }
  await submitJobs(store.requests(), [{ ...place, kind: 'fresh', entries: [record(1)], hasCosts: false }])

  const since = (await store.dump())['since:normal'] as { zset: Record<string, number> }
  expect(Math.abs((since.zset.a ?? 0) / 1000 - Date.now())).toBeLessThan(10_000)
})

it('takes in nothing where nothing is given, and wakes nobody', async () => {
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { reply, changes } = await store.changesOf(() => store.submitLines([]))

  expect(reply).toMatchObject({ accepted: 0, firsts: [] })
  expect(Object.keys(changes)).toEqual(['client:producer'])
})
