import { once } from 'node:events'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { TcpProxy } from './tcp-proxy.ts'

let server: TestRedis
let proxy: TcpProxy
let direct: Redis
const clients: Redis[] = []

beforeAll(async () => {
  server = await startRedis()
  direct = server.client()
})
afterAll(() => server.stop())

beforeEach(async () => {
  await direct.flushall()
  proxy = await TcpProxy.start({ port: server.port })
})
afterEach(async () => {
  for (const client of clients.splice(0)) client.disconnect()
  await proxy.close()
})

/** A client that does not hide a broken link: no second try, no waiting. */
function client(): Redis {
  const redis = new Redis(proxy.port, '127.0.0.1', {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 5,
  })
  redis.on('error', () => {})
  clients.push(redis)
  return redis
}

describe('the TCP proxy', () => {
  it('passes everything on and counts requests by command and connection', async () => {
    const redis = client()

    await redis.set('text', 'x'.repeat(300_000))
    const replies = await redis.pipeline().get('text').incr('count').incr('count').exec()

    expect(replies?.map(([, reply]) => (typeof reply === 'string' ? reply.length : reply))).toEqual([300_000, 1, 2])
    expect(proxy.requests.get('INCR')).toBe(2)
    expect([...proxy.requestsByConnection.values()]).toEqual([proxy.totalRequests])
  })

  it('loses the reply of a chosen request after the server has executed it, once', async () => {
    const redis = client()
    await redis.ping()

    const rule = proxy.loseReplies({ containing: 'count', times: 1 })
    await redis.incr('other')
    const lost = await redis.incr('count').catch((error: Error) => error)

    expect(lost).toBeInstanceOf(Error)
    expect(await direct.get('count')).toBe('1')
    expect(rule.lost).toBe(1)
    expect(await client().incr('count')).toBe(2)
  })

  it('loses every n-th reply', async () => {
    const rule = proxy.loseReplies({ containing: 'INCR', every: 3 })

    const failed: number[] = []
    for (let i = 1; i <= 9; i++)
      await client()
        .incr('count')
        .catch(() => failed.push(i))

    expect(failed).toEqual([3, 6, 9])
    expect(rule.lost).toBe(3)
    expect(await direct.get('count')).toBe('9')
  })

  it('keeps the client in silence when told so', async () => {
    const redis = client()
    await redis.ping()
    proxy.loseReplies({ containing: 'INCR', how: 'silence', times: 1 })

    const reply = redis.incr('count')
    reply.catch(() => {})
    await once(proxy, 'lost')
    await expect.poll(() => direct.get('count'), { timeout: 20_000 }).toBe('1')

    expect(await Promise.race([reply, new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))])).toBe('nothing')
  })

  it('resets all connections at once', async () => {
    const redis = client()
    await redis.ping()

    const closed = new Promise((resolve) => redis.once('close', resolve))
    proxy.cut()

    await closed
    expect(await client().ping()).toBe('PONG')
  })

  it('refuses new connections until it accepts again', async () => {
    await proxy.refuse()
    const refused = client()
    await expect(refused.ping()).rejects.toThrow()

    await proxy.accept()

    expect(await client().ping()).toBe('PONG')
  })

  it('swallows both directions as a blackhole, and leaves what it spoilt silent when healed', async () => {
    const redis = client()
    await redis.ping()

    proxy.blackhole()
    const reply = redis.incr('count')
    reply.catch(() => {})
    await once(proxy, 'request')
    proxy.heal()
    const later = redis.incr('count')
    later.catch(() => {})

    expect(await client().ping()).toBe('PONG')
    expect(await direct.get('count')).toBeNull()
    expect(await Promise.race([reply, later, Promise.resolve('nothing')])).toBe('nothing')
  })

  it('delays and slices without changing a byte or the order', async () => {
    proxy.latencyMs = 20
    proxy.sliceBytes = 1
    const redis = client()
    await redis.ping()

    const start = performance.now()
    const replies = await Promise.all([redis.set('text', 'añb\r\nc'), redis.get('text'), redis.incr('count')])

    expect(replies).toEqual(['OK', 'añb\r\nc', 1])
    expect(performance.now() - start).toBeGreaterThanOrEqual(39)
  })
})
