import { afterEach } from 'vitest'
import { openRedis, type Redis, type RedisOptions } from '../../src/store/redis.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'

/** Opens connections to one target, and closes those of a test after it. @param target - Asked when it is needed. */
export function useConnections(target: () => RedisOptions['redis']): (options?: Partial<RedisOptions>) => Redis {
  const open: Redis[] = []
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()))
  })
  return (options = {}) => {
    const redis = openRedis({ redis: target(), ...options })
    open.push(redis)
    return redis
  }
}

/** The id of the next server that answers. */
export function nextConnect(redis: Redis): Promise<string> {
  return new Promise((resolve) => {
    const off = redis.onReconnect((serverId) => {
      off()
      resolve(serverId)
    })
  })
}

/** What a server is told apart by, also from itself before a restart. */
export async function runIdOf(server: TestRedis): Promise<string> {
  return /run_id:(\w+)/.exec(await server.client().info('server'))?.[1] ?? ''
}
