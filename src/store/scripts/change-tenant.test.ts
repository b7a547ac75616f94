import { expect, it } from 'vitest'
import { jobsOf } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant, type TenantPatch } from './change-tenant.ts'

const store = useScriptStore()

function change(patch: TenantPatch, tenant = 'a') {
  return changeTenant(store.requests(), tenant, patch, store.nowUs)
}

it('gives a tenant in line another weight and books what it was entitled to', async () => {
  await store.submit('a', 9)
  await store.submit('b', 9)
  await store.claim(8)

  const { changes } = await store.changesOf(() => change({ weight: 3 }))

  expect(changes).toEqual({
    queue: {
      'state.weights:normal': 4000,
    },
    'tenant:a': {
      'normal.entitled': 4_000_000,
      'normal.virtual': 4_000_000,
      weight: '3',
    },
  })
})

it('moves a tenant in line by the difference of its base priority', async () => {
  await store.submit('a', 1)

  const ahead = await store.changesOf(() => change({ base: -1_000 }))
  const back = await store.changesOf(() => change({ base: 0 }))

  expect(ahead.changes).toEqual({
    'ready:normal': {
      a: 999_000_001,
    },
    'tenant:a': {
      base: '-1000',
      'normal.score': 999_000_001,
    },
  })
  expect(back.changes).toEqual({
    'ready:normal': {
      a: 1_000_000_001,
    },
    'tenant:a': {
      base: null,
      'normal.score': 1_000_000_001,
    },
  })
})

it('makes all lines of a tenant stand on one level, without moving a job', async () => {
  await store.submit('a', 1, { level: 'high' })
  await store.submit('a', 1, { level: 'low' })

  const put = await store.changesOf(() => change({ level: 'normal' }))
  const claim = await store.claim(5, { levels: 'normal' })
  const off = await store.changesOf(() => change({ level: '' }))

  expect(put.changes).toEqual({
    queue: {
      'state.entry:normal': 1_000_000_004,
      'state.clock': 1_000_000_004,
      'state.weights:high': null,
      'state.weights:low': null,
      'state.weights:normal': 1000,
    },
    'ready:high': null,
    'ready:low': null,
    'ready:normal': {
      a: 1_000_000_004,
    },
    'since:high': null,
    'since:low': null,
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      'high.score': null,
      'low.score': null,
      'normal.score': 1_000_000_004,
      'normal.since': 1_000_000_000,
      override: 'normal',
    },
  })
  expect(jobsOf(claim).map(({ jobKey, standing }) => `${jobKey} on ${standing}`)).toEqual([
    'high:default:1000000000:a on normal',
    'low:default:1000000002:a on normal',
  ])
  expect(off.changes).toEqual({
    'tenant:a': {
      '(expires)': true,
      idle: '1',
      override: null,
    },
  })
})

it('takes a paused tenant out of line and puts it back at its place', async () => {
  await store.submit('a', 1)
  const before = await store.dump()

  const paused = await store.changesOf(() => change({ paused: true }))
  store.now += 1_000_000
  const resumed = await store.changesOf(() => change({ paused: false }))

  expect(paused.changes).toEqual({
    paused: {
      a: 1_000_000_000,
    },
    queue: {
      'state.weights:normal': null,
    },
    'ready:normal': null,
    'since:normal': null,
    'tenant:a': {
      paused: '1000000000',
    },
  })
  expect(resumed.changes).toEqual({
    paused: null,
    queue: {
      'state.weights:normal': 1000,
    },
    'ready:normal': {
      a: 1_000_000_001,
    },
    'since:normal': {
      a: 1_001_000_000,
    },
    'tenant:a': {
      'normal.since': 1_001_000_000,
      paused: null,
    },
  })
  expect((await store.dump())['ready:normal']).toEqual(before['ready:normal'])
})

it('keeps the settings of a tenant that has nothing to do, and lets it go without any', async () => {
  const set = await store.changesOf(() => change({ weight: 2 }))
  const unset = await store.changesOf(() => change({ weight: 1 }))

  expect(set.changes).toEqual({
    'tenant:a': {
      weight: '2',
    },
  })
  expect(unset.changes).toEqual({
    'tenant:a': {
      '(expires)': true,
      idle: '1',
      weight: null,
    },
  })
})

it('gives a parked tenant limits of its own and looks at it again', async () => {
  await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
  await store.submit('a', 2)
  await store.claim(1)

  const own = await store.changesOf(() =>
    change({ limits: { tenant: { name: 'tenant', kind: 'concurrency', max: 2 } } }),
  )
  const claim = await store.claim(5)
  const off = await store.changesOf(() => change({ limits: { tenant: { name: 'tenant', kind: 'declared' } } }))

  expect(own.changes).toEqual({
    events: ['type limits.changed tenant a'],
    parked: null,
    queue: {
      unparked: '1',
      own_limits: 'slots',
      'state.weights:normal': 1000,
      'state.weights:parked': null,
    },
    'ready:normal': {
      a: 1_000_000_065,
    },
    'since:normal': {
      a: 1_000_000_000,
    },
    'tenant:a': {
      limits: '[{"kind":"concurrency","max":2,"name":"tenant"}]',
      parked: null,
    },
  })
  expect(jobsOf(claim)).toHaveLength(1)
  expect(off.changes['tenant:a']).toMatchObject({ limits: null })
})

it('wakes an idle client', async () => {
  await store.submit('a', 1)
  await change({ paused: true })
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => change({ paused: false }))

  expect(changes).toMatchObject({ idle: null, paused: null, 'wake:sleeper': ['work'] })
})

it('changes nothing when it is repeated', async () => {
  await store.submit('a', 1)
  await change({ weight: 2, base: 5, level: 'high', paused: true })

  const { changes } = await store.changesOf(() => change({ weight: 2, base: 5, level: 'high', paused: true }))

  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(change({ weight: 2 })).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.outOfMemory(() => change({ weight: 2 }))

  expect(await store.dump()).toMatchObject({ 'tenant:a': { hash: { weight: '2' } } })
})
