import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { dumpKeyspace, type Keyspace, loadKeyspace } from './keyspace.ts'

let server: TestRedis
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  await server.client().flushall()
})

const keyspace: Keyspace = {
  'a:hash': { hash: { 'field 1': '', field2: 'ü' } },
  'a:list': { list: ['2', '1', '2'] },
  'a:set': { set: ['x', 'y'], ttl: true },
  'a:stream': {
    stream: [
      ['type', 'one', 'of', 'a'],
      ['type', 'two'],
    ],
  },
  'b*:string': { string: 'text\r\n' },
  'b*:zset': { zset: { low: Number.NEGATIVE_INFINITY, mid: 1757900000123456, high: Number.POSITIVE_INFINITY } },
}

describe('a keyspace', () => {
  it('is dumped as it was loaded, whatever its types, scores and expiries', async () => {
    const redis = server.client()

    await loadKeyspace(redis, keyspace)

    expect(await dumpKeyspace(redis)).toEqual(keyspace)
    expect(Object.keys(await dumpKeyspace(redis))).toEqual(Object.keys(keyspace))
  })

  it('is dumped in part by a prefix that is taken literally', async () => {
    const redis = server.client()
    await loadKeyspace(redis, keyspace)
    await redis.set('bc', 'not this one')

    expect(Object.keys(await dumpKeyspace(redis, 'b*'))).toEqual(['b*:string', 'b*:zset'])
  })

  it('replaces what a key held when it is loaded', async () => {
    const redis = server.client()
    await redis.rpush('b*:string', 'old')

    await loadKeyspace(redis, keyspace)

    expect(await dumpKeyspace(redis)).toEqual(keyspace)
  })
})
