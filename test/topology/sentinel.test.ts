import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisOptions } from '../../src/store/redis.ts'
import { nextConnect, runIdOf, useConnections } from '../support/connections.ts'
import { startSentinels, type TestSentinels } from '../support/sentinels.ts'

let sentinels: TestSentinels
const connect = useConnections(() => sentinels.redis)

beforeAll(async () => {
  sentinels = await startSentinels()
})

afterAll(() => sentinels?.stop())

describe('a master with sentinels', () => {
  it('is found through any of them', async () => {
    const master = await sentinels.master()
    const [first] = sentinels.redis.sentinels as string[]
    const addresses: RedisOptions['redis'][] = [
      sentinels.redis,
      { ...sentinels.redis, sentinels: ['127.0.0.1:1', first as string] },
      `redis-sentinel://127.0.0.1:1,${first}/mymaster`,
    ]

    const all = addresses.map((redis) => connect({ redis }))
    await Promise.all(all.map((each) => each.ready()))

    expect(all.map(({ serverId }) => serverId)).toEqual(Array(3).fill(await runIdOf(master)))
  })

  it('that no sentinel knows is an error that says so', async () => {
    const redis = connect({ redis: { ...sentinels.redis, name: 'other' }, commandTimeoutMs: 500 })

    await expect(redis.ready()).rejects.toThrow('No such master with that name')
  })

  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'is followed to the one that takes over, by commands and by blocking reads: %s',
    async (signal) => {
      await sentinels.heal()
      const redis = connect()
      const reader = redis.duplicate()
      await redis.call('SET', 'key', signal)
      await reader.ready()
      const blocked = reader.block('BLPOP', ['list', 60], 60_000).catch((error: unknown) => error)
      const master = await sentinels.master()
      const [elsewhere, readerElsewhere] = [nextConnect(redis), nextConnect(reader)]
      await redis.call('WAIT', 2, 1_000)

      await master.kill(signal)
      const next = await sentinels.failedOver(master)

      const serverId = await runIdOf(next)
      expect([await elsewhere, await readerElsewhere]).toEqual([serverId, serverId])
      expect(await blocked).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'unknown' })
      expect(await redis.call('GET', 'key')).toBe(signal)
      const item = reader.block('BLPOP', ['list', 10], 10_000)
      await redis.call('RPUSH', 'list', 'x')
      expect(await item).toEqual(['list', 'x'])
    },
  )

  it('is left when it becomes a replica, although it still answers', async () => {
    await sentinels.heal()
    const redis = connect()
    await redis.ready()
    const before = redis.serverId
    const elsewhere = nextConnect(redis)
    const old = await sentinels.master()

    await sentinels.promoteAnother()
    const next = await sentinels.failedOver(old)

    expect(await elsewhere).toBe(await runIdOf(next))
    expect(redis.serverId).not.toBe(before)
    expect(await redis.call('SET', 'key', 'new')).toBe('OK')
  })

  it('leaves no connection behind when it is closed, to servers or sentinels', async () => {
    await sentinels.heal()
    const redis = connect({ connectionName: 'gone' })
    await Promise.all([redis.ready(), redis.duplicate().ready()])

    await redis.close()

    for (const list of await sentinels.clientLists()) expect(list).not.toContain('name=gone')
  })
})
