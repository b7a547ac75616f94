import { describe, expect, it } from 'vitest'
import { jobsOf, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeSettings } from './change-settings.ts'
import { readLimits } from './read-limits.ts'
import { assertFormat } from './register-queue.ts'
import type { SubmitLine } from './submit-jobs.ts'

const store = useScriptStore()

it('makes a queue known in a new store, its limits open', async () => {
  await store.empty()

  const { changes } = await store.changesOf(() => store.register({ limits: { queue: '500/s' } }))

  expect(changes).toEqual({
    queue: {
      format: '1',
      server: 'server-1',
      since: '1000000000',
      settings:
        '{"alpha":0,"base_backoff":1000000,"congestion":true,"has_limits":true,"keep_actions":604800000000,"keep_dead":604800000000,"keep_events":86400000000,"keep_history":3600000000,"keep_ids":172800000000,"keep_results":86400000000,"limits":{"queue":[{"burst":5,"count":500,"jitter":50000,"kind":"bucket","name":"queue","window":1000000}]},"max_backoff":120000000,"max_close":3600000000,"max_events":10000,"max_pending":0,"max_pending_tenant":0,"max_progress":60000000,"max_stalls":5,"max_wait":60000000,"quantum":4,"snapshot":10000000,"strict":0}',
    },
    settings: {
      declared:
        '{"values":{"strict":0,"max_close":3600000000,"quantum":4,"alpha":0,"max_progress":60000000,"max_wait":60000000,"max_stalls":5,"max_pending":0,"max_pending_tenant":0,"keep_ids":172800000000,"keep_dead":604800000000,"keep_actions":604800000000,"keep_results":86400000000,"keep_events":86400000000,"max_events":10000,"congestion":true,"base_backoff":1000000,"max_backoff":120000000,"snapshot":10000000,"keep_history":3600000000},"limits":{"queue":[{"name":"queue","kind":"bucket","count":500,"window":1000000,"burst":5,"jitter":50000}],"high":[],"normal":[],"low":[],"tenant":[]}}',
    },
  })
})

it('refuses a queue that a version of another format has stored, and changes nothing', async () => {
  await store.client.hset(store.keys().queue, 'format', '2')

  const { reply, changes } = await store.changesOf(() => store.register({ quantum: 9 }).catch((error: Error) => error))

  expect(reply).toMatchObject({ code: 'SLUICE_STORE_FORMAT', queue: 'q', stored: 2, known: 1 })
  expect(String(reply)).toContain('is stored by a newer version of Sluice (format 2, this one has 1)')
  expect(changes).toEqual({})
  await expect(assertFormat(store.redis, store.keys())).rejects.toMatchObject({ code: 'SLUICE_STORE_FORMAT' })
})

it('takes a queue over that was stored before there were numbers of formats', async () => {
  await store.client.hdel(store.keys().queue, 'format')

  const { changes } = await store.changesOf(() => store.register())

  expect(changes).toEqual({ queue: { format: '1' } })
})

it('changes nothing when it is repeated', async () => {
  await store.submit('a', 1)

  const { changes } = await store.changesOf(() => store.register())

  expect(changes).toEqual({})
})

it('replaces what was declared before, and keeps what operators changed', async () => {
  await store.begin({ quantum: 2, alpha: 10 })
  await changeSettings(store.requests(), { values: { quantum: 9 } }, store.nowUs)

  await store.register({ quantum: 3, alpha: 20 })

  const { queue } = await store.dump()
  const settings = queue && 'hash' in queue ? JSON.parse(queue.hash.settings ?? '') : undefined
  expect(settings).toMatchObject({ quantum: 9, alpha: 20 })
})

describe('with other limits than before', () => {
  const oneEach = { limits: { tenant: { kind: 'concurrency', max: 1 } } } as const

  it('puts what the old ones had parked on its way back into line, and wakes an idle client for it', async () => {
    await store.begin(oneEach)
    await store.submit('a', 2)
    await store.claim(2)
    await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

    const { changes } = await store.changesOf(() => store.register({}))
    const claimed = await store.claim(5)

    expect({ ...changes, queue: {}, settings: {} }).toEqual({
      events: ['type limits.changed'],
      idle: null,
      parked: null,
      queue: {},
      settings: {},
      unparking: { a: 9_000_000_000_000_000 },
      'wake:sleeper': ['work'],
    })
    expect(shortly(claimed)).toBe('a2')
  })

  it('lifts those that strict shares had parked when shares become fair', async () => {
    await store.begin({ share: 'strict', limits: { queue: { kind: 'window', limit: 2, windowMs: 3_600_000 } } })
    await store.submit('a', 3)
    await store.submit('b', 3)
    await store.claim(1)
    await store.claim(1)
    const before = await store.dump()

    await store.register({ limits: { queue: { kind: 'window', limit: 2, windowMs: 3_600_000 } } })

    expect(before).toHaveProperty('parked')
    expect(await store.dump()).not.toHaveProperty('parked')
  })

  it('leaves the parked alone when they are the same, whatever else is declared', async () => {
    await store.begin(oneEach)
    await store.submit('a', 2)
    await store.claim(2)

    await store.register({ ...oneEach, quantum: 7 })

    expect(await store.dump()).toMatchObject({ parked: { zset: { a: 9e15 } } })
  })

  it('carries an earlier change out first, in bounded steps', async () => {
    await store.begin(oneEach)
    const tenants = Array.from({ length: 250 }, (_, index) => `t${index}`)
    await store.submitLines(tenants.map((tenant) => line(tenant, 2)))
    for (let claimed = 0; claimed < tenants.length; ) claimed += jobsOf(await store.claim(1_000)).length
    await store.register({ limits: { tenant: { kind: 'concurrency', max: 2 } } })
    const lifted = await store.client.zcard(store.keys().unparking)

    await store.register({})

    expect(lifted).toBe(250)
    expect(await store.client.zcard(store.keys().unparking)).toBe(0)
    expect(await store.client.zcard(store.keys().readyNormal)).toBe(250)
    expect((await store.dump()).queue).toMatchObject({
      hash: { settings: expect.stringContaining('"limits":{}') },
    })
  })
})

it('closes limits as after a restart when the store has lost a queue that the caller knew', async () => {
  await store.empty()

  await store.register({ limits: { queue: '500/s' } }, true)

  expect((await store.dump()).limits).toMatchObject({ hash: { '@lost': store.nowUs } })
  const { rows } = await readLimits(store.requests(), '', store.nowUs)
  expect(rows[0]).toMatchObject({ available: 0, opensInUs: 1_050_000 })
})

it('leaves limits open when another process has registered the queue again before', async () => {
  const { changes } = await store.changesOf(() => store.register({}, true))

  expect(changes).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.empty()

  await store.outOfMemory(() => store.register())

  expect(Object.keys(await store.dump())).toEqual(['queue', 'settings'])
})

function line(tenant: string, count: number): SubmitLine {
  const entries = Array.from({ length: count }, (_, index) => record(index + 1))
  return { tenant, level: 'normal', lane: 'default', basePriority: undefined, kind: 'fresh', entries }
}
