import { describe, expect, it } from 'vitest'
import { jobsOf, record, shortly } from '../../../test/support/script-store/script-jobs.ts'
import { sharedLimit } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { checkQueueOptions, declaredSettings, type QueueOptions } from '../../engine/queue-options.ts'
import { changeSettings } from './change-settings.ts'
import { closeQueue } from './close-queue.ts'
import { readLimits } from './read-limits.ts'
import { assertFormat } from './register-queue.ts'
import type { SubmitLine } from './submit-jobs.ts'

const store = useScriptStore()

it('makes a queue known in a new store, its limits open', async () => {
  await store.empty()

  const { reply, changes } = await store.changesOf(() => store.register({ limits: { queue: '500/s' }, quantum: 4 }))

  const bucket = '{"burst":5,"count":500,"jitter":50000,"kind":"bucket","name":"queue","window":1000000}'
  expect(reply).toBe('1000000000')
  expect(changes).toEqual({
    queue: {
      format: '1',
      server: 'server-1',
      since: '1000000000',
      'state.clock': 999_999_999,
      settings: `{"alpha":0,"base_backoff":1000000,"congestion":true,"has_limits":true,"keep_actions":604800000000,"keep_dead":604800000000,"keep_events":86400000000,"keep_history":3600000000,"keep_ids":172800000000,"keep_results":86400000000,"known_since":"1000000000","limits":{"queue":[${bucket}]},"max_backoff":120000000,"max_close":3600000000,"max_events":10000,"max_pending":0,"max_pending_tenant":0,"max_progress":60000000,"max_stalls":5,"max_wait":60000000,"quantum":4,"snapshot":10000000,"strict":0}`,
    },
    settings: { declared: expect.any(String) },
  })
  expect(await declared()).toEqual({
    values: declaredSettings(checkQueueOptions('q', {})).values,
    given: { quantum: true },
    limits: { queue: [JSON.parse(bucket)], high: {}, normal: {}, low: {}, tenant: {} },
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

describe('what was declared before', () => {
  it('stays where it is not given, and nothing is written by a process that gives nothing', async () => {
    await store.begin({ limits: { queue: '500/s' }, share: 'strict', maxPending: 7, congestion: { baseBackoffMs: 5 } })

    const { changes } = await store.changesOf(() => store.register({}))

    expect(changes).toEqual({})
    expect(await inForce()).toMatchObject({ has_limits: true, strict: 1, max_pending: 7, base_backoff: 5_000 })
  })

  it('is replaced where it is given, value by value', async () => {
    await store.begin({ limits: { queue: '500/s' }, quantum: 2, congestion: { baseBackoffMs: 5, enabled: false } })

    await store.register({ quantum: 3, alpha: 20, congestion: { enabled: true } })

    const expected = { quantum: 3, alpha: 20, congestion: true, base_backoff: 5_000, has_limits: true }
    expect(await inForce()).toMatchObject(expected)
  })

  it('stays although its option is undefined, as a config without it has it', async () => {
    await store.begin({ limits: { queue: '500/s' }, quantum: 2 })

    await store.register({ limits: undefined, quantum: undefined } as unknown as QueueOptions)

    expect(await inForce()).toMatchObject({ has_limits: true, quantum: 2 })
  })

  it('of limits is replaced as a whole, also by none', async () => {
    await store.begin({ limits: { queue: '500/s', tenant: '5/s' }, quantum: 2 })

    await store.register({ limits: { queue: '100/s' } })
    const fewer = await inForce()
    await store.register({ limits: {} })

    expect(fewer).toMatchObject({ limits: { queue: [{ count: 100 }] } })
    expect(fewer).not.toHaveProperty('limits.tenant')
    expect(await inForce()).toMatchObject({ limits: {}, quantum: 2 })
    expect(await inForce()).not.toHaveProperty('has_limits')
  })

  it('stays under what operators changed', async () => {
    await store.begin({ limits: { queue: '500/s' }, quantum: 2, alpha: 10 })
    await changeSettings(store.requests(), { values: { quantum: 9 } }, store.nowUs)

    await store.register({ quantum: 3, alpha: 20 })

    expect(await inForce()).toMatchObject({ quantum: 9, alpha: 20, has_limits: true, known_since: '1000000000' })
  })

  it('of a version that gave all or nothing stays only in its limits: its values may be the defaults it had', async () => {
    await store.begin({ limits: { queue: '500/s' }, quantum: 2, alpha: 3 })
    const { given: _, ...older } = await declared()
    await store.client.hset(store.keys().settings, 'declared', JSON.stringify(older))

    await store.register({ alpha: 5 })

    expect(await inForce()).toMatchObject({ has_limits: true, quantum: 4, alpha: 5 })
  })

  it('by a newer version stays too, also what this one does not know', async () => {
    await store.begin({ quantum: 2 })
    const { values, given, limits } = await declared()
    const newer = { values: { ...values, later: 1 }, given: { ...given, later: true }, limits }
    await store.client.hset(store.keys().settings, 'declared', JSON.stringify(newer))

    await store.register({ alpha: 5 })

    expect(await inForce()).toMatchObject({ later: 1, quantum: 2, alpha: 5 })
  })

  it('is not what a closed place still has of it', async () => {
    await store.begin({ limits: { queue: '500/s' }, quantum: 2 })
    await closeQueue(store.redis, store.keys(), store.nowUs)

    await store.register({ alpha: 5 })

    expect(await inForce()).toMatchObject({ quantum: 4, alpha: 5, limits: {} })
  })
})

describe('with other limits than before', () => {
  const oneEach = { limits: { tenant: { kind: 'concurrency', max: 1 } } } as const

  it('puts what the old ones had parked on its way back into line, and wakes an idle client for it', async () => {
    await store.begin(oneEach)
    await store.submit('a', 2)
    await store.claim(2)
    await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

    const { changes } = await store.changesOf(() => store.register({ limits: {} }))
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

    await store.register({ share: 'fair' })

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

  /** So many that a further change takes several calls. */
  async function liftMany(): Promise<void> {
    await store.begin(oneEach)
    const tenants = Array.from({ length: 250 }, (_, index) => `t${index}`)
    await store.submitLines(tenants.map((tenant) => line(tenant, 2)))
    for (let claimed = 0; claimed < tenants.length; ) claimed += jobsOf(await store.claim(1_000)).length
    await store.register({ limits: { tenant: { kind: 'concurrency', max: 2 } } })
  }

  it('notes that the store had lost the queue with the first of several calls', async () => {
    await liftMany()

    await store.register({ limits: {} }, '900000000')

    expect((await store.dump()).limits).toEqual({ hash: { '@lost': store.nowUs } })
  })

  it('carries an earlier change out first, in bounded steps', async () => {
    await liftMany()
    const lifted = await store.client.zcard(store.keys().unparking)

    await store.register({ limits: {} })

    expect(lifted).toBe(250)
    expect(await store.client.zcard(store.keys().unparking)).toBe(0)
    expect(await store.client.zcard(store.keys().readyNormal)).toBe(250)
    expect((await store.dump()).queue).toMatchObject({
      hash: { settings: expect.stringContaining('"limits":{}') },
    })
  })

  it('gives back the slots of a shared limit that it no longer names', async () => {
    await store.empty()
    store.group = 'gitlab'
    const slots = (name: string, max: number) => sharedLimit({ kind: 'concurrency', max }, name)
    const [few, many] = [slots('few', 1), slots('many', 9)]
    for (const queue of ['a', 'b']) {
      store.use(queue)
      await store.register({ limits: { few, many } })
      await store.submit(queue, 2)
    }
    await store.claim(1)

    const { changes } = await store.changesOf(() => store.register({ limits: { many } }))

    expect(changes['@limits']).toEqual({ 'few/running': '0', 'few/running/b': '0' })
    store.use('a')
    expect(shortly(await store.claim(1))).toBe('a1')
  })
})

describe('in a store that was emptied since the caller registered', () => {
  const limited = { limits: { queue: '500/s' } } as const

  it('closes limits as after a restart', async () => {
    await store.empty()

    await store.register(limited, '900000000')

    expect((await store.dump()).limits).toMatchObject({ hash: { '@lost': store.nowUs } })
    expect(await opensInUs()).toBe(1_050_000)
  })

  it('closes them also when a process has made the queue known again that did not know it', async () => {
    await store.begin()

    const since = await store.register(limited, '900000000')

    expect(since).toBe('1000000000')
    expect((await store.dump()).limits).toMatchObject({ hash: { '@lost': store.nowUs } })
    expect(await opensInUs()).toBe(1_050_000)
  })

  it('leaves them as they are when another process that knew it has closed them before', async () => {
    await store.empty()
    await store.register(limited, '900000000')
    store.now += 500_000

    const { changes } = await store.changesOf(() => store.register(limited, '900000000'))

    expect(changes).toEqual({})
    expect(await opensInUs()).toBe(550_000)
  })

  it('leaves them open where the place of a queue was only closed', async () => {
    await store.begin(limited)
    await closeQueue(store.redis, store.keys(), store.nowUs)
    store.now += 5

    const since = await store.register(limited, '1000000000')

    expect(since).toBe('1000000000')
    expect(await opensInUs()).toBe(0)
  })

  it('knows a queue from before it was noted since when by a 0', async () => {
    await store.begin(limited)
    await store.client.hdel(store.keys().queue, 'since')

    const [first, second] = [await store.register(limited), await store.register(limited, '0')]

    expect([first, second]).toEqual(['0', '0'])
    expect(await opensInUs()).toBe(0)
  })

  it('leaves them open for a caller that knows the queue as it is', async () => {
    await store.begin(limited)

    const { changes } = await store.changesOf(() => store.register(limited, '1000000000'))

    expect(changes).toEqual({})
    expect(await opensInUs()).toBe(0)
  })
})

it('runs while Redis is out of memory', async () => {
  await store.empty()

  await store.outOfMemory(() => store.register())

  expect(Object.keys(await store.dump())).toEqual(['queue', 'settings'])
})

function line(tenant: string, count: number): SubmitLine {
  const entries = Array.from({ length: count }, (_, index) => record(index + 1))
  return { tenant, level: 'normal', lane: 'default', basePriority: undefined, kind: 'fresh', entries, hasCosts: false }
}

async function declared() {
  return JSON.parse((await store.client.hget(store.keys().settings, 'declared')) as string)
}

/** What scripts go by. */
async function inForce() {
  const { queue } = await store.dump()
  return queue && 'hash' in queue ? JSON.parse(queue.hash.settings ?? '') : undefined
}

async function opensInUs() {
  const { rows } = await readLimits(store.requests(), '', store.nowUs)
  return rows[0]?.opensInUs
}
