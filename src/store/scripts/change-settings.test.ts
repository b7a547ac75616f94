import { expect, it } from 'vitest'
import { finishedAs, jobsOf, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { beginGroup, sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import type { LimitScope } from '../settings.ts'
import { changeSettings } from './change-settings.ts'

const store = useScriptStore()

const slow = { name: 'tenant', kind: 'bucket', count: 1, window: 1_000_000, burst: 1, jitter: 0 } as const

function change(patch: Parameters<typeof changeSettings>[1]) {
  return changeSettings(store.requests(), patch, store.nowUs)
}

/** The shared limit `gitlab`, by these names of each scope. */
function attachment(names: Partial<Record<LimitScope, readonly string[]>>): Parameters<typeof changeSettings>[1] {
  const rule = (name: string) => [name, { name, kind: 'shared', limit: 'gitlab' }] as const
  const scopes = Object.entries(names).map(([scope, of]) => [scope, Object.fromEntries(of.map(rule))])
  return { limits: Object.fromEntries(scopes) }
}

it('puts values and limits in the place of the declared ones', async () => {
  await store.begin({ limits: { queue: '500/s' } })

  const { changes } = await store.changesOf(() =>
    change({ values: { quantum: 7 }, limits: { tenant: { tenant: slow } } }),
  )

  expect(changes).toEqual({
    events: ['type limits.changed'],
    queue: {
      settings:
        '{"alpha":0,"base_backoff":1000000,"congestion":true,"has_limits":true,"keep_actions":604800000000,"keep_dead":604800000000,"keep_events":86400000000,"keep_history":3600000000,"keep_ids":172800000000,"keep_results":86400000000,"known_since":"1000000000","limits":{"queue":[{"burst":5,"count":500,"jitter":50000,"kind":"bucket","name":"queue","window":1000000}],"tenant":[{"burst":1,"count":1,"jitter":0,"kind":"bucket","name":"tenant","window":1000000}]},"max_backoff":120000000,"max_close":3600000000,"max_events":10000,"max_pending":0,"max_pending_tenant":0,"max_progress":60000000,"max_stalls":5,"max_wait":60000000,"quantum":7,"snapshot":10000000,"strict":0}',
    },
    settings: {
      changed:
        '{"limits":{"tenant":{"tenant":{"count":1,"jitter":0,"burst":1,"kind":"bucket","window":1000000,"name":"tenant"}}},"values":{"quantum":7}}',
    },
  })
})

it('takes a limit off, and goes back to what is declared', async () => {
  await store.begin({ limits: { queue: '500/s' } })
  const before = await queueField('settings')
  await change({ limits: { queue: { queue: { kind: 'none' } } } })
  const off = JSON.parse((await queueField('settings')) ?? '{}')

  await change({ limits: { queue: { queue: { kind: 'declared' } } } })

  expect(off.limits).toEqual({})
  expect(await queueField('settings')).toEqual(before)
})

it.each([
  ['on a level beside the queue', { upstream: sharedLimit('10/s') }, { high: ['gitlab'] }],
  ['on the queue beside a level', { levels: { low: sharedLimit('10/s') } }, { queue: ['gitlab'] }],
  ['by a second name', { upstream: sharedLimit('10/s') }, { queue: ['again'] }],
  ['by a second name on another level', { levels: { low: sharedLimit('10/s') } }, { high: ['again'] }],
] as const)('refuses to attach a shared limit again %s, and changes nothing', async (_, limits, names) => {
  await beginGroup(store, '10/s', {})
  store.use('a')
  await store.register({ limits })

  const { changes } = await store.changesOf(() => expect(change(attachment(names))).rejects.toThrow('a second time'))

  expect(changes).toEqual({})
})

it('attaches a shared limit to a further level by its name, and takes off one of several', async () => {
  await beginGroup(store, '10/s', {})
  store.use('a')
  await store.register({ limits: { levels: { low: sharedLimit('10/s') } } })
  await change(attachment({ high: ['gitlab'] }))
  await change({ limits: { low: { gitlab: { kind: 'none' } } } })

  expect(JSON.parse((await queueField('settings')) ?? '{}').limits).toMatchObject({ high: [{ limit: 'gitlab' }] })
})

it.each([
  ['the slots', { kind: 'concurrency', max: 1 }],
  ['the call that asks', { kind: 'quota', threshold: 0 }],
] as const)('gives back %s of a shared limit that it takes off a queue whose job runs', async (_, definition) => {
  await beginGroup(store, definition, { b: 1, a: 2 })
  const claimed = await store.claim(1)
  store.use('b')
  await store.claim(1, { idleForMs: 5_000 }, 'sleeper')
  store.use('a')

  const { changes } = await store.changesOf(() => change({ limits: { queue: { upstream: { kind: 'none' } } } }))
  await store.claim(0, { finished: finishedAs(claimed, { outcome: 'succeeded' }) })

  expect(changes).toMatchObject({
    '@limits': { 'gitlab/running': '0', 'gitlab/running/a': '0' },
    'b:wake:sleeper': ['work'],
  })
  store.use('b')
  expect(shortly(await store.claim(1))).toBe('b1')
})

it('puts what limits had parked on its way back into line, and wakes an idle client for it', async () => {
  await store.begin({ limits: { tenant: { tenant: { kind: 'concurrency', max: 1 } } } })
  await store.submit('a', 2)
  await store.submit('b', 2)
  await store.claim(2)
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const changed = await store.changesOf(() =>
    change({ limits: { tenant: { tenant: { name: 'tenant', kind: 'concurrency', max: 2 } } } }),
  )
  const claimed = await store.changesOf(() => store.claim(5))

  expect({ ...changed.changes, queue: {}, settings: {} }).toEqual({
    events: ['type limits.changed'],
    idle: null,
    parked: null,
    queue: {},
    settings: {},
    unparking: {
      a: 9_000_000_000_000_000,
      b: 9_000_000_000_000_000,
    },
    'wake:sleeper': ['work'],
  })
  expect(jobsOf(claimed.reply)).toHaveLength(2)
  expect(claimed.changes).toEqual({
    'claim:1000000001': {
      'normal:default:1000000001:a': '|rs|SEND|||2',
      'normal:default:1000000003:b': '|rs|SEND|||2',
    },
    'client:me': {
      '3': '3',
    },
    'lane:normal:default:a': null,
    'lane:normal:default:b': null,
    leases: {
      '1000000001:me': 1_015_000_000,
    },
    queue: {
      'state.round:normal': 1_000_000_130,
      'state.reached:normal': 5000,
      'state.entry:normal': 1_000_000_066,
      unparked: '2',
      claimed: '4',
      'granted:tenant/tenant': '4',
      'state.fence': 1_000_000_001,
      'state.running': 4,
      'state.running:normal': 4,
      'state.turns': 4,
      'state.virtual:normal': 3_000_000,
      'state.waiting': null,
      'state.weights:parked': null,
      'state.starts': 4,
    },
    running: {
      a: '2',
      b: '2',
    },
    'tenant:a': {
      'normal.reached': 2000,
      '(expires)': true,
      idle: '1',
      'normal.entitled': 1_000_000,
      'normal.lane': null,
      'normal.lanes': null,
      'normal.received': 2,
      'normal.score': null,
      'normal.virtual': 2_000_000,
      parked: null,
      'state.waiting': null,
    },
    'tenant:b': {
      'normal.reached': 2000,
      '(expires)': true,
      idle: '1',
      'normal.entitled': 3_000_000,
      'normal.lane': null,
      'normal.lanes': null,
      'normal.received': 2,
      'normal.score': null,
      'normal.virtual': 3_000_000,
      parked: null,
      'state.waiting': null,
    },
    unparking: null,
  })
})

it('parks a tenant again that the changed limits still refuse, once', async () => {
  await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
  await store.submit('a', 3)
  await store.claim(1)
  await change({ values: { quantum: 5 } })

  await store.claim(1)
  const again = await store.changesOf(() => store.claim(1))

  expect(await store.dump()).toMatchObject({ parked: { zset: { a: 9e15 } } })
  expect(await store.dump()).not.toHaveProperty('unparking')
  expect(again.changes).toEqual({ 'client:me': expect.anything() })
})

it('carries an earlier change out before the next one, in bounded steps', async () => {
  await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
  const tenants = Array.from({ length: 450 }, (_, index) => `t${index}`)
  for (const tenant of tenants) await store.submit(tenant, 2)
  for (let claimed = 0; claimed < tenants.length; ) claimed += jobsOf(await store.claim(1_000)).length

  await change({ limits: { tenant: { tenant: { name: 'tenant', kind: 'concurrency', max: 2 } } } })
  const parked = await store.client.zcard(store.keys().unparking)
  await change({ values: { quantum: 2 } })

  expect(parked).toBe(450)
  expect(await store.client.zcard(store.keys().unparking)).toBe(0)
  expect(await store.client.zcard(store.keys().readyNormal)).toBe(450)
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(change({ values: { quantum: 2 } })).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.outOfMemory(() => change({ values: { quantum: 2 } }))

  expect(JSON.parse((await queueField('settings')) ?? '')).toMatchObject({ quantum: 2 })
})

async function queueField(field: string): Promise<string | undefined> {
  const { queue } = await store.dump()
  return queue && 'hash' in queue ? queue.hash[field] : undefined
}
