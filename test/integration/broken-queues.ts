import type { Redis } from 'ioredis'
import type { Queue } from '../../src/index.ts'

/** Does harm to a queue. @param key - Makes the name of a key of its last part. */
type Break = (redis: Redis, key: (name: string) => string) => Promise<unknown>

/** Puts another number into a packed field. */
const repack = (redis: Redis, key: string, field: string, at: number, add: number) =>
  redis.eval(
    `local values = { cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1])) }
     values[tonumber(ARGV[2])] = values[tonumber(ARGV[2])] + tonumber(ARGV[3])
     return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(unpack(values)))`,
    1,
    key,
    field,
    String(at),
    String(add),
  )

const first = async (redis: Redis, key: string): Promise<string> => (await redis.zrange(key, 0, '0'))[0] as string

/** Every way to break a queue, by the kind of difference that the audit must find. */
export const breaks: Readonly<Record<string, Break>> = {
  'tenant.waiting': (redis, key) => repack(redis, key('tenant:a'), 'state', 1, 5),
  'tenant.delayed': (redis, key) => repack(redis, key('tenant:a'), 'state', 2, 5),
  'tenant.front': (redis, key) => repack(redis, key('tenant:a'), 'state', 4, 2),
  'tenant.marks': (redis, key) => repack(redis, key('tenant:a'), 'state', 5, 99),
  'tenant.running': (redis, key) => redis.hset(key('running'), 'a', 9),
  'tenant.expiry': (redis, key) => redis.pexpire(key('tenant:a'), 100_000),
  'turns.count': (redis, key) => repack(redis, key('tenant:a'), 'normal', 1, 1),
  'turns.current': (redis, key) =>
    redis.eval(
      `local values = { cmsgpack.unpack(redis.call('HGET', KEYS[1], 'normal')) }
       redis.call('LPUSH', KEYS[2], values[10])
       values[10] = ''
       return redis.call('HSET', KEYS[1], 'normal', cmsgpack.pack(unpack(values)))`,
      2,
      key('tenant:a'),
      key('ring:normal:a'),
    ),
  'turns.missing': (redis, key) => redis.del(key('ring:normal:a')),
  'turns.twice': (redis, key) => redis.rpush(key('ring:normal:a'), 'named'),
  'turns.empty': (redis, key) => redis.rpush(key('ring:normal:a'), 'nothing'),
  'lane.number': (redis, key) => redis.hdel(key('lanes:a'), 'normal:named'),
  'lane.busy': (redis, key) => redis.hset(key('lanes:a'), 'busy:normal:!ordered', 'normal:!ordered:5:a'),
  'front.record': async (redis, key) => {
    const [job] = await redis.lrange(key('front:normal:default:a'), 0, 0)
    await redis.hdel(key('aside'), job as string)
  },
  'ready.normal.missing': (redis, key) => redis.zrem(key('ready:normal'), 'a'),
  'ready.normal.score': (redis, key) => redis.zincrby(key('ready:normal'), 7, 'a'),
  'ready.high.extra': (redis, key) => redis.zadd(key('ready:high'), 1, 'a'),
  'since.normal.missing': (redis, key) => redis.zrem(key('since:normal'), 'a'),
  'since.low.extra': (redis, key) => redis.zadd(key('since:low'), 1, 'a'),
  'parked.missing': (redis, key) => redis.zrem(key('parked'), 'limited'),
  'parked.extra': (redis, key) => redis.zadd(key('parked'), 9e15, 'a'),
  'unparking.extra': (redis, key) => redis.zadd(key('unparking'), 1, 'a'),
  'paused.missing': (redis, key) => redis.zrem(key('paused'), 'paused'),
  'paused.extra': (redis, key) => redis.zadd(key('paused'), 1, 'a'),
  'backlog.extra': (redis, key) => redis.zadd(key('backlog'), 9, 'b'),
  'delayed.record': async (redis, key) => redis.hdel(key('aside'), await first(redis, key('delayed'))),
  'delayed.running': async (redis, key) => {
    const fence = (await first(redis, key('leases'))).split(':')[0]
    const [job] = await redis.hkeys(key(`claim:${fence}`))
    await redis.zadd(key('delayed'), 9e15, job as string)
  },
  'aside.place': async (redis, key) => redis.zrem(key('delayed'), await first(redis, key('delayed'))),
  'lease.empty': (redis, key) => redis.zadd(key('leases'), 9e15, '1:gone'),
  'claim.lease': async (redis, key) => redis.zrem(key('leases'), await first(redis, key('leases'))),
  'claim.twice': async (redis, key) => {
    const fence = (await first(redis, key('leases'))).split(':')[0]
    const [job, text] = Object.entries(await redis.hgetall(key(`claim:${fence}`)))[0] as [string, string]
    await redis.hset(key('claim:9000000000000000'), job, text)
    await redis.zadd(key('leases'), 9e15, '9000000000000000:other')
  },
  'dead.record': async (redis, key) => redis.hdel(key('dead:jobs'), await first(redis, key('dead'))),
  'dead.instant': async (redis, key) => redis.zrem(key('dead'), await first(redis, key('dead'))),
  'action.waiting': (redis, key) => repack(redis, key('action:a:x'), 'state', 6, 1),
  'action.delayed': (redis, key) => repack(redis, key('action:a:x'), 'state', 8, 1),
  'action.running': (redis, key) => repack(redis, key('action:a:x'), 'state', 7, 1),
  'queue.waiting': (redis, key) => repack(redis, key('queue'), 'state', 6, 3),
  'queue.delayed': (redis, key) => repack(redis, key('queue'), 'state', 7, 3),
  'queue.running': (redis, key) => repack(redis, key('queue'), 'state', 8, 3),
  'queue.running.normal': (redis, key) => repack(redis, key('queue'), 'state', 10, 3),
  'queue.weights.normal': (redis, key) => repack(redis, key('queue'), 'state', 16, 500),
  'queue.weights.parked': (redis, key) => repack(redis, key('queue'), 'state', 19, 500),
  'queue.canceling': (redis, key) => repack(redis, key('queue'), 'state', 18, 2),
}

/** A queue with jobs in every place, and tenants in every state. */
export async function fillForAudit(queue: Queue): Promise<void> {
  await queue.submit({ type: 'D', tenant: 'b', maxRetries: 0 })
  for (const job of await queue.claim(1)) await job.fail(new Error('no'))
  await queue.tenant('limited').setLimits({ own: { kind: 'concurrency', max: 1 } })
  await queue.submit({ jobs: ['limited', 'limited', 'a', 'a', 'a', 'a', 'a'].map((tenant) => ({ type: 'T', tenant })) })
  await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: [{}, { delayMs: 600_000 }] })
  const claimed = await queue.claim(5)
  const [dying, returning] = claimed.filter(({ tenant }) => tenant === 'a')
  await dying?.fail(new Error('no'))
  await returning?.release()
  await queue.submit({ type: 'T', tenant: 'a', lane: 'named' })
  await queue.submit({ type: 'T', tenant: 'a', delayMs: 600_000 })
  await queue.tenant('paused').pause()
  await queue.submit({ type: 'T', tenant: 'paused' })
}
