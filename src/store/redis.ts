import { checkOptions } from '../assert.ts'
import { ClusterRedis } from './cluster.ts'
import { ReconnectingRedis } from './reconnecting.ts'
import { type RedisOptions, type RedisSettings, redisRules } from './redis-options.ts'
import type { ConnectionWatch, Redis } from './redis-port.ts'
import { isCluster, isSentinel } from './redis-target.ts'
import { Sentinels } from './sentinel.ts'
import { atAddress, embedded } from './whereabouts.ts'

export type { RedisArgument } from './command.ts'
export type { RedisAddress } from './connection.ts'
export { type RedisOptions, redisRules } from './redis-options.ts'
export type { ConnectionWatch, Redis } from './redis-port.ts'
export type { RedisCluster, RedisNode, RedisSentinels } from './redis-target.ts'

/** Opens at once and returns at once: calls wait for the connection. */
export function openRedis(options: RedisOptions): Redis {
  return connectRedis(checkOptions('redis', options, redisRules))
}

/** The same with options that were checked by `redisRules` among others. */
export function connectRedis(settings: RedisSettings, watch?: ConnectionWatch): Redis {
  const { redis, dataDir } = settings
  if (redis === 'embedded') return new ReconnectingRedis(settings, () => embedded(dataDir), { watch })
  if (isCluster(redis)) return new ClusterRedis(settings, redis, { watch })
  if (!isSentinel(redis)) return new ReconnectingRedis(settings, () => atAddress(redis), { watch })
  const sentinels = new Sentinels(redis, settings)
  return new ReconnectingRedis(settings, () => sentinels.whereabouts(), {
    watch,
    onClose: () => sentinels.close(),
  })
}
