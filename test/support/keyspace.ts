import type { Redis } from 'ioredis'

/**
 * What one key holds. A set is sorted; a zset maps members to scores; an entry of a stream is its fields, without its id,
 * which the server makes of its own time; `ttl` marks a key that expires.
 */
export type KeyContent = (
  | { string: string }
  | { list: string[] }
  | { hash: Record<string, string> }
  | { set: string[] }
  | { zset: Record<string, number> }
  | { stream: string[][] }
) & { ttl?: true }

/** Every key of a server by name, so that a test can compare all of what a script left behind. */
export type Keyspace = Record<string, KeyContent>

/** Long enough that no key a test has loaded expires while the test runs. */
const LOADED_TTL_SECONDS = 3_600

/** The whole keyspace, or the part of it whose names start with `prefix`, sorted by name. */
export async function dumpKeyspace(redis: Redis, prefix = ''): Promise<Keyspace> {
  const names = (await redis.keys(`${escapeGlob(prefix)}*`)).sort()
  const contents = await Promise.all(names.map((name) => readKey(redis, name)))
  return Object.fromEntries(names.map((name, i) => [name, contents[i] as KeyContent]))
}

/** Adds the keys of a dump to a server; one that is there already is replaced. */
export async function loadKeyspace(redis: Redis, keyspace: Keyspace): Promise<void> {
  const pipeline = redis.pipeline()
  for (const [name, content] of Object.entries(keyspace)) {
    pipeline.del(name)
    if ('string' in content) pipeline.set(name, content.string)
    else if ('list' in content) pipeline.rpush(name, ...content.list)
    else if ('hash' in content) pipeline.hset(name, content.hash)
    else if ('set' in content) pipeline.sadd(name, ...content.set)
    else if ('stream' in content) for (const fields of content.stream) pipeline.xadd(name, '*', ...fields)
    else pipeline.zadd(name, ...Object.entries(content.zset).flatMap(([member, score]) => [formatScore(score), member]))
    if (content.ttl) pipeline.expire(name, LOADED_TTL_SECONDS)
  }
  const replies = (await pipeline.exec()) ?? []
  for (const [error] of replies) if (error) throw error
}

async function readKey(redis: Redis, name: string): Promise<KeyContent> {
  const [content, pttl] = await Promise.all([readContent(redis, name), redis.pttl(name)])
  return pttl >= 0 ? { ...content, ttl: true } : content
}

async function readContent(redis: Redis, name: string): Promise<KeyContent> {
  const type = await redis.type(name)
  switch (type) {
    case 'string':
      return { string: (await redis.get(name)) ?? '' }
    case 'list':
      return { list: await redis.lrange(name, 0, -1) }
    case 'hash':
      return { hash: await redis.hgetall(name) }
    case 'set':
      return { set: (await redis.smembers(name)).sort() }
    case 'zset':
      return { zset: Object.fromEntries(pairs(await redis.zrange(name, 0, '-1', 'WITHSCORES'))) }
    case 'stream':
      return { stream: (await redis.xrange(name, '-', '+')).map(([, fields]) => fields) }
    default:
      throw new Error(`cannot read the key ${name}: it holds a ${type}`)
  }
}

/** Members and scores alternate in the reply. */
function pairs(reply: readonly string[]): [string, number][] {
  const result: [string, number][] = []
  for (let i = 0; i + 1 < reply.length; i += 2) result.push([reply[i] as string, parseScore(reply[i + 1] as string)])
  return result
}

function parseScore(score: string): number {
  if (score === 'inf') return Number.POSITIVE_INFINITY
  if (score === '-inf') return Number.NEGATIVE_INFINITY
  return Number(score)
}

function formatScore(score: number): string {
  if (score === Number.POSITIVE_INFINITY) return '+inf'
  if (score === Number.NEGATIVE_INFINITY) return '-inf'
  return String(score)
}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&')
}
