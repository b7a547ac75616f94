import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import type { Redis } from '../../src/store/redis.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import { startCluster, type TestCluster } from '../support/cluster.ts'
import { nextConnect, runIdOf, useConnections } from '../support/connections.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'

let cluster: TestCluster
const connect = useConnections(() => cluster.redis)

beforeAll(async () => {
  cluster = await startCluster()
})

afterAll(() => cluster?.stop())

/** Keys in slots of each of the three masters. */
const KEYS = ['{b}', '{a}', '{c}', '{http}']

describe('a cluster', () => {
  it('takes each command to the node that has its key', async () => {
    const redis = connect()

    await Promise.all(KEYS.map((key) => redis.call('SET', key, key)))

    expect(await Promise.all(KEYS.map((key) => redis.call('GET', key)))).toEqual(KEYS)
    const servers = await Promise.all(KEYS.map(async (key) => runIdOf(await cluster.masterOf(key))))
    expect(KEYS.map((key) => redis.at(key).serverId)).toEqual(servers)
    expect(new Set(servers).size).toBe(3)
  })

  it('is found through any of its nodes, replicas included', async () => {
    const [replica] = cluster.nodes.slice(3) as [TestRedis]
    const redis = connect({ redis: `redis-cluster://127.0.0.1:1,127.0.0.1:${replica.port}` })

    await redis.ready()

    expect(await redis.call('SET', '{a}', 1)).toBe('OK')
  })

  it('refuses to work when one of its nodes evicts keys', async () => {
    const admin = (cluster.nodes[1] as TestRedis).client()
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
    try {
      await expect(connect().ready()).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED_REDIS' })
      await connect({ allowEviction: true }).ready()
    } finally {
      await admin.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })

  it('wakes a process that only names a queue at the node of the group that the queue is in', async () => {
    const [owner, other] = [new Sluice({ redis: cluster.redis }), new Sluice({ redis: cluster.redis })]
    onTestFinished(async () => {
      await Promise.all([owner.close(), other.close()])
    })
    const queue = owner.queue('a', { limits: { shared: owner.limit('shared', '500/s', { group: 'b' }) } })
    await queue.counts()
    const [started, aborted] = [withResolvers<void>(), withResolvers<void>()]
    other.queue('a').process('T', (_, { signal }) => {
      signal.addEventListener('abort', () => aborted.resolve())
      started.resolve()
      return aborted.promise
    })
    const redis = connect()
    await until(async () => (await redis.call('ZCARD', `${keyPrefix('sluice', 'a', 'b')}idle`)) === 1)

    const submittedAt = performance.now()
    await queue.submit({ type: 'T', id: 'one' })
    await started.promise
    await queue.cancel('one')
    await aborted.promise

    // Left to its heartbeat it would start after 12 s, and never be told that it is cancelled.
    expect(performance.now() - submittedAt).toBeLessThan(10_000)
    expect(await cluster.masterOf('{a}')).not.toBe(await cluster.masterOf('{b}'))
  })

  it('is followed by commands and a blocking read while a slot moves, and none of them fails', async () => {
    const redis = connect()
    const reader = redis.at('{moving}').duplicate()
    await redis.call('SET', '{moving}', 1)
    await reader.ready()
    const from = await cluster.masterOf('{moving}')
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as TestRedis
    const item = read(reader, '{moving}list')

    await cluster.moveSlot('{moving}', to)
    await redis.call('INCR', '{moving}')
    await redis.call('RPUSH', '{moving}list', 'x')

    expect(await item).toEqual(['{moving}list', 'x'])
    expect(await redis.call('GET', '{moving}')).toBe('2')
    expect(redis.at('{moving}').serverId).toBe(await runIdOf(to))
    expect(reader.serverId).toBe(await runIdOf(to))
  })

  it('keeps calls waiting while their slot is in two places', async () => {
    const redis = connect()
    for (let count = 0; count < 20; count++) await redis.call('SET', `{slow}:${count}`, 'x')
    const from = await cluster.masterOf('{slow}')
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as TestRedis

    const moving = cluster.moveSlot('{slow}', to, 20)
    const script = "#!lua\nreturn redis.call('MGET', unpack(KEYS))"
    const keys = Array.from({ length: 20 }, (_, count) => `{slow}:${count}`)
    const values = await redis.call('EVAL', script, 20, ...keys)
    await moving

    expect(values).toEqual(Array(20).fill('x'))
  })

  it('refuses a script before it has changed anything when a key it chose itself is elsewhere', async () => {
    const redis = connect()
    for (const name of ['a', 'b', 'c', 'd']) await redis.call('SET', `{half}:${name}`, 'x')
    const from = await cluster.masterOf('{half}')
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as TestRedis
    const moving = cluster.moveSlot('{half}', to, 300)
    const script =
      "#!lua\nlocal v = {} for _, n in ipairs({'a','b','c','d'}) do v[#v+1] = redis.call('GET', '{half}:' .. n) end redis.call('SET', KEYS[1], table.concat(v)) return v"

    const values = await redis.call('EVAL', script, 1, '{half}:d')
    await moving

    expect(values).toEqual(['x', 'x', 'x', 'x'])
  })

  it.each(['SIGKILL', 'SIGSTOP'] as const)('goes on with the replica of a master that is gone: %s', async (signal) => {
    await cluster.heal()
    const redis = connect()
    const slot = redis.at('{a}')
    const reader = slot.duplicate()
    await slot.call('SET', '{a}', signal)
    await slot.call('WAIT', 1, 1_000)
    await reader.ready()
    const blocked = reader.block('BLPOP', ['{a}list', 60], 60_000).catch((error: unknown) => error)
    const [elsewhere, readerElsewhere] = [nextConnect(slot), nextConnect(reader)]
    const master = await cluster.masterOf('{a}')

    await master.kill(signal)
    slot.call('PING').catch(() => {})
    const next = await cluster.failedOver('{a}', master)

    const serverId = await runIdOf(next)
    expect([await elsewhere, await readerElsewhere]).toEqual([serverId, serverId])
    expect(await blocked).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'unknown' })
    expect(await slot.call('GET', '{a}')).toBe(signal)
  })

  it('leaves no connection behind when it is closed', async () => {
    await cluster.heal()
    const redis = connect({ connectionName: 'gone' })
    await Promise.all(KEYS.map((key) => redis.call('GET', key)))
    await redis.at('{a}').duplicate().ready()

    await redis.close()

    for (const node of cluster.nodes) expect(String(await node.client().client('LIST'))).not.toContain('name=gone')
    await expect(redis.call('GET', '{a}')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })
})

/** A blocking read that goes on where it was cut off, as its users do. */
async function read(reader: Redis, list: string): Promise<unknown> {
  for (;;) {
    const item = await reader.block('BLPOP', [list, 10], 10_000).catch(() => undefined)
    if (item !== undefined) return item
  }
}
