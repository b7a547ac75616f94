import { boolean, group, integer, optional, type Settings, text } from '../assert.ts'
import type { RedisAddress } from './connection.ts'
import { type RedisCluster, type RedisSentinels, redisTarget } from './redis-target.ts'

const durabilityRules = {
  replicas: integer({ min: 1, max: 100, default: 1 }),
  timeoutMs: integer({ min: 10, max: 60_000, default: 5_000 }),
}

export type DurabilitySettings = Settings<typeof durabilityRules>

export const redisRules = {
  redis: redisTarget(),
  durability: optional(group(durabilityRules)),
  commandTimeoutMs: integer({ min: 10, max: 600_000, default: 3_000 }),
  allowEviction: boolean({ default: false }),
  connectionName: text({ pattern: { test: /^[!-~]+$/, words: 'printable ASCII without spaces' }, default: 'sluice' }),
  dataDir: text({ default: '.sluice' }),
}

export type RedisSettings = Settings<typeof redisRules>

export interface RedisOptions {
  /**
   * `'embedded'` for a private redis-server of this machine under `dataDir`; a URL (`redis://`, `rediss://`,
   * `redis-sentinel://`, `redis-cluster://`), the path of a unix socket, or an address: of one server, of the sentinels
   * of a master, or of nodes of a Cluster. There is no default: a process with a missing URL must not get limits of its
   * own.
   */
  redis: string | RedisAddress | RedisSentinels | RedisCluster
  /**
   * What is accepted has reached replicas before the caller is told so: a failover to one of them loses none of it.
   * Submits, actions and changes wait for it; claims and finishes do not, because a job whose claim or finish is lost
   * runs again. Costs a round trip to the replicas for each call that waits.
   * @default none: a failover loses what had not reached the replica
   */
  durability?: {
    /**
     * How many replicas must have it.
     * @default 1
     */
    replicas?: number
    /**
     * For how long they are waited for; then the call rejects with TooFewReplicasError. Longer rides out a replica that
     * is being replaced, shorter says sooner that there is none.
     * @default 5_000
     */
    timeoutMs?: number
  }
  /**
   * How long a command may take. After it the server counts as dead and the connection is made anew: shorter notices
   * a hung server sooner, longer forgives a slow one.
   * @default 3_000
   */
  commandTimeoutMs?: number
  /**
   * Accept a server whose maxmemory-policy evicts keys. Jobs can vanish then, without a trace.
   * @default false
   */
  allowEviction?: boolean
  /**
   * What CLIENT LIST shows.
   * @default 'sluice'
   */
  connectionName?: string
  /**
   * The folder of the embedded server: data, socket and log.
   * @default '.sluice'
   */
  dataDir?: string
}
