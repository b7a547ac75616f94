import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { nextConnect } from '../../test/support/connections.ts'
import { checkOptions } from '../assert.ts'
import { type StartRedisOptions, startRedis, type TestRedis } from '../testing/redis-server.ts'
import { openRedis, type Redis, type RedisOptions, redisRules } from './redis.ts'

const open: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

async function start(options?: StartRedisOptions): Promise<TestRedis> {
  const server = await startRedis(options)
  open.push(() => server.stop())
  return server
}

function connect(redis: RedisOptions['redis'], options: Omit<RedisOptions, 'redis'> = {}): Redis {
  const client = openRedis({ redis, ...options })
  open.push(() => client.close())
  return client
}

/** A server that answers every command by what `answer` says; nothing when that is undefined. */
async function fakeServer(answer: (command: string) => string | undefined): Promise<number> {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (data) => {
      for (const [, name] of data.toString().matchAll(/\*\d+\r\n\$\d+\r\n(\w+)/g)) {
        const reply = answer((name ?? '').toUpperCase())
        if (reply !== undefined) socket.write(reply)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(
    () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(resolve)
      }),
  )
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`
}

describe('an address', () => {
  it('is a URL, the path of a socket, or its parts', async () => {
    const server = await start({ config: { requirepass: 'p@ss word' } })
    const password = 'p@ss word'
    const addresses: RedisOptions['redis'][] = [
      `redis://:p%40ss%20word@127.0.0.1:${server.port}/2`,
      { path: server.path, password },
      { host: '127.0.0.1', port: server.port, password },
      { path: server.path, username: 'default', password, db: 3 },
    ]

    const replies = await Promise.all(addresses.map((address) => connect(address).call('CLIENT', 'INFO')))

    expect(replies.map((reply) => /\bdb=(\d+)/.exec(String(reply))?.[1])).toEqual(['2', '0', '0', '3'])
    expect(replies.every((reply) => String(reply).includes('name=sluice'))).toBe(true)
  })

  it.each([
    [undefined, 'redis is required'],
    ['localhost:6379', 'redis must begin with redis://, rediss://, redis-sentinel://, redis-cluster:// or unix://'],
    ['::secret::', 'redis must be a URL'],
    ['redis://host/abc', 'redis must name its database by number'],
    [{ host: 'a', prot: 1 }, 'redis.prot is not an option; did you mean "port"?'],
    [{ port: 70_000 }, 'redis.port must be a whole number from 1 to 65535'],
    [12, 'must be an object'],
    [{ sentinels: [] }, 'redis.sentinels must be a list of at least one node'],
    [{ sentinels: 'a:1', name: 'm' }, "must be a list of at least one node, such as ['host:26379']"],
    [{ sentinels: ['a:1'] }, 'redis.name is required'],
    [{ sentinels: ['a:b:c'], name: 'm' }, 'redis.sentinels.0 must be a host and a port'],
    [{ sentinels: ['a:99999'], name: 'm' }, 'redis.sentinels.0 must be a host and a port'],
    [
      { sentinels: [{ host: 'a', prot: 1 }], name: 'm' },
      'redis.sentinels.0.prot is not an option; did you mean "port"?',
    ],
    [{ sentinels: ['a:1'], name: 'm', cluster: ['a:1'] }, 'redis.cluster is not an option'],
    [{ cluster: [] }, 'redis.cluster must be a list of at least one node'],
    [{ cluster: ['a:1'], db: 3 }, 'redis.db cannot be chosen: a Cluster has one database, 0'],
    [{ cluster: ['a:1'], pasword: 'x' }, 'redis.pasword is not an option; did you mean "password"?'],
    ['redis-sentinel://a:1,b:2', 'redis must name the master after the sentinels'],
    ['redis-cluster://a:1,b:x', 'redis must list hosts and ports'],
    ['redis-cluster://a:1/2', 'redis must name no database'],
  ])('%j is refused', (redis, message) => {
    expect(() => openRedis({ redis: redis as string })).toThrow(message)
  })

  it.each([
    [
      'rediss-sentinel://me:p%40ss@a:1,b,[::1]:3/my%20master/2',
      {
        sentinels: [
          { host: 'a', port: 1 },
          { host: 'b', port: 26_379 },
          { host: '::1', port: 3 },
        ],
        name: 'my master',
        username: 'me',
        password: 'p@ss',
        db: 2,
        tls: true,
        sentinelTls: true,
      },
    ],
    [
      'redis-cluster://:secret@a,b:7000',
      {
        cluster: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 7000 },
        ],
        password: 'secret',
      },
    ],
  ])('%s names several servers', (url, target) => {
    expect(checkOptions('redis', { redis: url }, redisRules).redis).toEqual(target)
  })

  it.each([{ replicas: 0 }, { replicas: 1.5 }, { timeoutMs: 0 }, { replica: 1 }])(
    'durability %j is refused',
    (durability) => {
      expect(() => openRedis({ redis: 'redis://127.0.0.1:1', durability })).toThrow('durability.')
    },
  )
})

describe('a call', () => {
  it('gives replies as the server sends them', async () => {
    const redis = connect(`unix://${(await start()).path}`)
    await redis.call('HSET', 'hash', 'a', 1, 'b', 2.5)

    expect(await redis.call('hgetall', 'hash')).toEqual(['a', '1', 'b', '2.5'])
    expect(await redis.callWith('GET', ['none'])).toBeNull()
  })

  it('made before there is a connection waits for it, in order', async () => {
    const redis = connect((await start()).url)

    const replies = Promise.all([redis.call('RPUSH', 'l', 1), redis.call('RPUSH', 'l', 2), redis.call('RPUSH', 'l', 3)])

    expect(await replies).toEqual([1, 2, 3])
  })

  it('rejects with the error of the server, without the arguments of the command', async () => {
    const redis = connect((await start()).url)
    await redis.call('SET', 'text', 'x')

    const error = await redis.call('LPUSH', 'text', 'my secret').catch((reason: unknown) => reason)

    expect(error).toMatchObject({ name: 'ReplyError', message: expect.stringMatching(/^WRONGTYPE/) })
    expect(error).not.toHaveProperty('command')
  })

  it('rejects as not sent when there is no server in time', async () => {
    const redis = connect('redis://127.0.0.1:1', { commandTimeoutMs: 100 })

    await expect(redis.call('PING')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      outcome: 'not-sent',
      reason: expect.stringContaining('ECONNREFUSED'),
    })
  })

  it('says that Redis is out of memory', async () => {
    const redis = connect((await start({ config: { maxmemory: 1 } })).url)

    await expect(redis.call('SET', 'a', 1)).rejects.toMatchObject({ code: 'SLUICE_STORE_OUT_OF_MEMORY' })
  })
})

describe('a server that hangs', () => {
  it('is taken for a dead one, and served again when it goes on', async () => {
    const server = await start()
    const redis = connect(server.url, { commandTimeoutMs: 200 })
    const serverId = await nextConnect(redis)
    await server.kill('SIGSTOP')

    await expect(redis.call('INCR', 'a')).rejects.toMatchObject({ outcome: 'unknown', reason: 'no reply in time' })
    await expect(redis.call('INCR', 'a')).rejects.toMatchObject({ outcome: 'not-sent' })
    const reconnected = nextConnect(redis)
    await server.kill('SIGCONT')

    expect(await reconnected).toBe(serverId)
    // The call whose outcome was unknown did run; the one that was not sent did not.
    expect(await redis.call('INCR', 'a')).toBe(2)
  })

  it('is not confused with a process that was busy itself', async () => {
    const redis = connect((await start()).url, { commandTimeoutMs: 100 })
    await redis.ready()
    let reconnects = 0
    redis.onReconnect(() => reconnects++)

    const reply = redis.call('PING')
    // The command leaves with the end of this turn; then the event loop stands still for longer than a command may take.
    await new Promise<void>((resolve) => setImmediate(resolve))
    const end = performance.now() + 300
    while (performance.now() < end);

    expect(await reply).toBe('PONG')
    expect(reconnects).toBe(0)
  })

  it('does not hold up closing', async () => {
    const server = await start()
    const redis = connect(server.url, { commandTimeoutMs: 60_000 })
    await redis.ready()
    await server.kill('SIGSTOP')
    const call = redis.call('PING').catch((error: unknown) => error)

    await redis.close()

    expect(await call).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'unknown' })
  })
})

describe('a server that restarts', () => {
  it('is connected again under another id, before the calls that waited', async () => {
    const server = await start({ appendonly: true, config: { appendfsync: 'always' } })
    const redis = connect(server.url)
    await redis.call('SET', 'a', 1)
    const firstId = redis.serverId
    const order: string[] = []
    redis.onReconnect((serverId) => order.push(serverId))

    await server.kill()
    const waiting = redis.call('GET', 'a').then((reply) => order.push(String(reply)))
    await server.restart()
    await waiting

    expect(order).toEqual([redis.serverId, '1'])
    expect(redis.serverId).not.toBe(firstId)
  })

  it('leaves the outcome of what was on its way unknown', async () => {
    const server = await start()
    const redis = connect(server.url)
    await redis.ready()
    await server.kill('SIGSTOP')
    const calls = [redis.call('INCR', 'a'), redis.call('INCR', 'a')].map((call) =>
      call.catch((error: unknown) => error),
    )
    await new Promise<void>((resolve) => setImmediate(resolve))

    await server.kill('SIGKILL')

    for (const call of calls) expect(await call).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'unknown' })
  })
})

describe('a server that cannot serve now', () => {
  it.each(['READONLY You can’t write', 'LOADING Redis is loading', 'MASTERDOWN Link is down'])(
    'is asked again by another connection: %s',
    async (error) => {
      const port = await fakeServer((command) => {
        if (command === 'INFO') return bulk('redis_version:7.2.0\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\n')
        return command === 'SET' ? `-${error}\r\n` : '+OK\r\n'
      })
      const redis = connect(`redis://127.0.0.1:${port}`)
      await redis.ready()
      const reconnected = nextConnect(redis)

      await expect(redis.call('SET', 'a', 1)).rejects.toMatchObject({ outcome: 'not-sent', reason: error })

      expect(await reconnected).toBe('abc')
    },
  )

  it.each(['BUSY Redis is busy', 'MISCONF Errors writing', 'NOREPLICAS Not enough', 'CLUSTERDOWN down', 'TRYAGAIN'])(
    'keeps its connection: %s',
    async (error) => {
      const port = await fakeServer((command) => {
        if (command === 'INFO') return bulk('redis_version:7.2.0\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\n')
        return command === 'SET' ? `-${error}\r\n` : '+OK\r\n'
      })
      const redis = connect(`redis://127.0.0.1:${port}`)
      await redis.ready()
      let reconnects = 0
      redis.onReconnect(() => reconnects++)

      await expect(redis.call('SET', 'a', 1)).rejects.toMatchObject({ outcome: 'not-sent', reason: error })

      expect(await redis.call('PING')).toBe('OK')
      expect(reconnects).toBe(0)
    },
  )

  it('is a replica: calls wait until it is a master again', async () => {
    const server = await start()
    const admin = server.client()
    await admin.replicaof('127.0.0.1', 1)
    const redis = connect(server.url, { commandTimeoutMs: 10_000 })
    const call = redis.call('SET', 'a', 1)
    let isSettled = false
    void call.finally(() => {
      isSettled = true
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(isSettled).toBe(false)

    await admin.replicaof('NO', 'ONE')

    expect(await call).toBe('OK')
  })
})

describe('a server that must not be used', () => {
  it('evicts keys: calls are refused at once, and let through when it is set right', async () => {
    const server = await start({ config: { 'maxmemory-policy': 'allkeys-lru' } })
    const redis = connect(server.url)

    const refused = redis.call('PING')

    await expect(refused).rejects.toMatchObject({ code: 'SLUICE_UNSUPPORTED_REDIS', maxmemoryPolicy: 'allkeys-lru' })
    await expect(redis.ready()).rejects.toThrow('Set it to noeviction, or accept the loss with allowEviction: true.')
    const connected = nextConnect(redis)
    await server.client().config('SET', 'maxmemory-policy', 'noeviction')
    await connected
    expect(await redis.call('PING')).toBe('PONG')
  })

  it('may evict keys when told so', async () => {
    const server = await start({ config: { 'maxmemory-policy': 'volatile-ttl' } })

    expect(await connect(server.url, { allowEviction: true }).call('PING')).toBe('PONG')
  })

  it('is too old', async () => {
    const port = await fakeServer((command) =>
      command === 'INFO' ? bulk('redis_version:6.2.14\r\nrun_id:abc\r\nmaxmemory_policy:noeviction\r\n') : '+OK\r\n',
    )

    await expect(connect(`redis://127.0.0.1:${port}`).ready()).rejects.toThrow(
      'Redis 6.2.14 is too old: Sluice needs Redis 7.0 or newer, or Valkey.',
    )
  })

  it('accepts connections and never answers', async () => {
    const port = await fakeServer(() => undefined)

    await expect(connect(`redis://127.0.0.1:${port}`, { commandTimeoutMs: 100 }).call('PING')).rejects.toMatchObject({
      code: 'SLUICE_STORE_UNAVAILABLE',
      outcome: 'not-sent',
    })
  })
})

describe('a blocking read', () => {
  it('waits for its own time-out, not for that of a command', async () => {
    // Redis ends a block up to 100 ms late, and on a busy machine later: a command must be given longer than that.
    const redis = connect((await start()).url, { commandTimeoutMs: 1_000 })
    const reader = redis.duplicate()

    expect(await reader.block('BLPOP', ['list', 1.5], 1_500)).toBeNull()

    const item = reader.block('BLPOP', ['list', 10], 10_000)
    await redis.call('RPUSH', 'list', 'x')
    expect(await item).toEqual(['list', 'x'])
  })

  it('is rejected when the server is gone for good', async () => {
    const server = await start()
    const redis = connect(server.url, { commandTimeoutMs: 100 })
    const reader = redis.duplicate()
    await reader.ready()
    await server.kill('SIGSTOP')

    await expect(reader.block('BLPOP', ['list', 0.2], 200)).rejects.toMatchObject({ outcome: 'unknown' })
  })
})

describe('close', () => {
  it('settles what is on its way, what waits and what blocks, also on duplicates', async () => {
    const server = await start()
    const redis = connect(server.url)
    const reader = redis.duplicate()
    await reader.ready()
    const blocked = reader.block('BLPOP', ['list', 0], 60_000).catch((error: unknown) => error)
    const unreachable = connect('redis://127.0.0.1:1')
    const waiting = unreachable.call('PING').catch((error: unknown) => error)

    await Promise.all([redis.close(), unreachable.close()])

    expect(await blocked).toMatchObject({ code: 'SLUICE_STORE_UNAVAILABLE', outcome: 'unknown' })
    expect(await waiting).toMatchObject({ code: 'SLUICE_CLOSED' })
    await expect(redis.call('PING')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    await expect(reader.call('PING')).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('leaves no connection on the server', async () => {
    const server = await start()
    const redis = connect(server.url)
    await Promise.all([redis.ready(), redis.duplicate().ready()])

    await redis.close()
    await redis.close()

    expect(String(await server.client().client('LIST'))).not.toContain('name=sluice')
  })
})
