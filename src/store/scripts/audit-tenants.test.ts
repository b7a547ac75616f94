import { describe, expect, it } from 'vitest'
import { record } from '../../../test/support/script-store/script-jobs.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { auditTenants } from './audit-tenants.ts'

const store = useScriptStore()

function audit({ isRepairing = true, tenants = ['a'], lanes = [] as string[] } = {}) {
  const met = tenants.map((name) => ({ name, lanes }))
  return auditTenants(store.requests(), met, { isRepairing, nowUs: store.nowUs })
}

async function fill(): Promise<void> {
  await store.submit('a', 2)
  await store.submit('a', 1, { lane: 'named' })
  await store.claim(1)
}

it('finds nothing in tenants that are as they should be, and changes nothing', async () => {
  await fill()
  await store.submit('b', 2)

  const { reply, changes } = await store.changesOf(() => audit({ tenants: ['a', 'b', 'gone'] }))

  expect(reply).toMatchObject({ differences: [], lookedAt: 3, skipped: [] })
  expect(changes).toEqual({})
})

it('puts a tenant back in line that stands in no set, counts that and tells of it', async () => {
  await store.submit('a', 2)
  await store.submit('b', 1)
  await store.client.zrem(store.keys().readyNormal, 'a')
  await store.client.zrem(store.keys().sinceNormal, 'a')

  const { reply, changes } = await store.changesOf(() => audit({ tenants: ['b', 'a'] }))

  expect(reply.differences.map(({ kind }) => kind)).toEqual(['ready.normal.missing', 'since.normal.missing'])
  expect(changes).toMatchObject({
    'ready:normal': { a: 1_000_000_001 },
    'since:normal': { a: 1_000_000_000 },
    queue: { differences: '2', 'difference:ready.normal.missing': '1', 'difference:since.normal.missing': '1' },
  })
  expect(Object.keys(changes).sort()).toEqual(['events', 'queue', 'ready:normal', 'since:normal'])
})

it('only looks when it is told so', async () => {
  await store.submit('a', 2)
  await store.client.del(store.keys().readyNormal)

  const { reply, changes } = await store.changesOf(() => audit({ isRepairing: false }))

  expect(reply.differences).toEqual([
    { kind: 'ready.normal.missing', subject: 'a', expected: '1000000001', found: 'none' },
  ])
  expect(changes).toEqual({})
})

it('makes no tenant of a name that is gone by now, although it mends another', async () => {
  await store.submit('a', 2)
  await store.client.del(store.keys().readyNormal)

  const { changes } = await store.changesOf(() => audit({ tenants: ['gone', 'a'] }))

  expect(changes).not.toHaveProperty('tenant:gone')
})

it('counts the jobs of a lane that nothing but its key leads to', async () => {
  await store.submit('a', 2, { lane: 'named' })
  const start = store.keys().queue.slice(0, -'queue'.length)
  await store.client.del(`${start}tenant:a`, `${start}lanes:a`, store.keys().readyNormal, store.keys().sinceNormal)

  await audit({ lanes: ['normal:named'] })

  expect(await audit({ lanes: ['normal:named'] })).toMatchObject({ differences: [] })
  expect((await store.claim(2)).jobs).toHaveLength(4)
})

it('leaves those for another call that would be too much for one', async () => {
  const tenants = Array.from({ length: 300 }, (_, at) => `t${at}`)

  const { lookedAt } = await audit({ tenants })

  // Every tenant has a lane on each level that is looked at, whether there is anything in it or not.
  expect(lookedAt).toBe(200)
})

it('gives a tenant its place by backlog, and takes it from one that has none', async () => {
  await store.submit('a', 9)
  await store.submit('b', 7)
  await store.submit('c', 1)
  await store.claim(20)
  await store.submit('a', 9)
  await store.client.del(store.keys().backlog)
  await store.client.zadd(store.keys().backlog, 5, 'c')

  const { differences } = await audit({ tenants: ['a', 'b', 'c'] })

  expect(differences).toEqual([
    { kind: 'backlog.missing', subject: 'a', expected: '4', found: 'none' },
    { kind: 'backlog.extra', subject: 'c', expected: 'none', found: '5' },
  ])
  expect(await store.client.zrange(store.keys().backlog, 0, '-1', 'WITHSCORES')).toEqual(['a', '4'])
})

it('lets a tenant be forgotten that only seemed to have something', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
  await store.client.del(store.keys().delayed, store.keys().aside)

  expect(await audit()).toMatchObject({
    differences: [{ kind: 'tenant.delayed', subject: 'a', expected: '0', found: '1' }],
  })
  expect(await store.client.pttl(`${store.keys().queue.slice(0, -5)}tenant:a`)).toBeGreaterThan(0)
})

it('says that it cannot tell whose delayed jobs are gone, where there are too many', async () => {
  await store.submit('a', 0, { kind: 'later', entries: ['+60000000', '', record(1)] })
  const members = Array.from({ length: 1_501 }, (_, at) => [2e9, `normal:default:0${at}:b`]).flat()
  await store.client.del(store.keys().delayed)
  await store.client.zadd(store.keys().delayed, ...members)

  expect(await audit()).toMatchObject({ differences: [], skipped: ['delayed'] })
})

it('puts an action right of which nothing runs', async () => {
  await store.openAction('x', {}, { tenant: 'a' })
  const key = `${store.keys().queue.slice(0, -5)}action:a:x`
  await store.client.eval(
    "local v = { cmsgpack.unpack(redis.call('HGET', KEYS[1], 'state')) } v[7] = 3 redis.call('HSET', KEYS[1], 'state', cmsgpack.pack(unpack(v)))",
    1,
    key,
  )

  expect(await audit()).toMatchObject({
    differences: [{ kind: 'action.running', subject: 'a:x', expected: '0', found: '3' }],
  })
  expect(await audit()).toMatchObject({ differences: [] })
})

describe('an ordered lane', () => {
  const lanesKey = () => `${store.keys().queue.slice(0, -5)}lanes:a`
  const claimKey = async () => (await store.client.keys(`${store.keys().queue.slice(0, -5)}claim:*`))[0] as string

  /** Two that wait for the one that runs. */
  async function wait(): Promise<void> {
    await store.submit('a', 3, { lane: '!one' })
    await store.claim(1)
  }

  it('waits for a job that runs, or is delayed', async () => {
    await wait()
    const job = (await store.client.hget(lanesKey(), 'busy:normal:!one')) as string

    expect(await audit()).toMatchObject({ differences: [] })

    await store.client.del(await claimKey(), store.keys().leases)
    await store.client.hset(store.keys().aside, job, record(1))
    await store.client.zadd(store.keys().delayed, 9e15, job)
    expect((await audit()).differences.map(({ kind }) => kind)).not.toContain('lane.busy')
  })

  it('waits for a job of a claim that has lost its lease: it may still run, and will come back', async () => {
    await wait()
    await store.client.del(store.keys().leases)

    expect(await audit()).toMatchObject({ differences: [], skipped: [] })
  })

  it('goes on when the job it waits for is gone', async () => {
    await wait()
    const job = (await store.client.hget(lanesKey(), 'busy:normal:!one')) as string
    await store.client.hset(lanesKey(), 'busy:normal:!one', job.replace('!one', '!other'))

    const { differences } = await audit()

    expect(differences.map(({ kind }) => kind)).toEqual([
      'lane.busy',
      'turns.missing',
      'turns.count',
      'ready.normal.missing',
      'since.normal.missing',
    ])
    expect(differences[0]).toMatchObject({ subject: 'normal:!one:a', expected: 'none', found: expect.any(String) })
    expect(await audit()).toMatchObject({ differences: [] })
    expect((await store.claim(2)).jobs).toHaveLength(2)
  })

  it('leaves nothing behind when nothing waits in it', async () => {
    await store.submit('a', 1, { lane: '!one' })
    await store.claim(1)
    await store.client.hset(lanesKey(), 'busy:normal:!one', 'normal:!one:5:a')

    await audit()

    expect(await store.client.exists(lanesKey())).toBe(0)
  })

  it('does not wait for a job that is back in front of it', async () => {
    await wait()
    const job = 'normal:!one:5:a'
    await store.client.hset(lanesKey(), 'busy:normal:!one', job)
    await store.client.hset(store.keys().aside, job, record(1))
    await store.client.rpush(`${store.keys().queue.slice(0, -5)}front:normal:!one:a`, job)

    expect((await audit()).differences.map(({ kind }) => kind)).toContain('lane.busy')
  })

  it('is not looked at where too much runs', async () => {
    await wait()
    const members = Array.from({ length: 501 }, (_, at) => [9e15, `${at + 1}:other`]).flat()
    await store.client.zadd(store.keys().leases, ...members)

    expect(await audit()).toMatchObject({ differences: [], skipped: ['claims'] })
  })
})

it('runs while Redis is out of memory', async () => {
  await fill()

  expect(await store.outOfMemory(() => audit())).toMatchObject({ differences: [] })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(audit()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
