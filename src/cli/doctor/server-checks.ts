import { numberIn, type ServerInfo } from '../../store/server-info.ts'
import { type Finding, failure, ok, warning } from './finding.ts'

/** What the command line and the config file say of the store. */
export interface StoreFacts {
  readonly isEmbedded: boolean
  readonly allowsEviction: boolean
  /** As `durability` asks for; 0 without it. */
  readonly replicasWanted: number
}

const MEMORY_WARNING = 0.8
const CLIENTS_WARNING = 0.8

/** All that one server says of itself. One that is too old, loads its data or is a replica is not reached at all. */
export function checkServerInfo(info: ServerInfo, facts: StoreFacts): Finding[] {
  return [
    version(info),
    eviction(info, facts),
    persistence(info),
    memory(info, facts),
    replication(info, facts),
    connections(info),
  ]
}

function version(info: ServerInfo): Finding {
  const valkey = info.get('valkey_version')
  return ok('redis version', valkey === undefined ? (info.get('redis_version') ?? 'unknown') : `Valkey ${valkey}`)
}

function eviction(info: ServerInfo, { allowsEviction }: StoreFacts): Finding {
  const policy = info.get('maxmemory_policy') ?? 'unknown'
  if (policy === 'noeviction') return ok('eviction', policy)
  const fix = 'redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf'
  const found = `${policy}: jobs vanish when the memory is full`
  return allowsEviction ? warning('eviction', found, fix) : failure('eviction', found, fix)
}

function persistence(info: ServerInfo): Finding {
  const check = 'persistence'
  if (info.get('aof_enabled') === '1') {
    if (info.get('aof_last_write_status') !== 'err') return ok(check, 'append-only file')
    return failure(check, 'the last write of the append-only file failed', 'look at its log, and for room on its disk')
  }
  const fix = 'redis-cli CONFIG SET appendonly yes, and the same in redis.conf with appendfsync everysec'
  const saved =
    numberIn(info, 'rdb_last_save_time') > numberIn(info, 'server_start_time') || numberIn(info, 'rdb_saves') > 0
  if (info.get('rdb_last_bgsave_status') === 'err') {
    return failure(check, 'the last snapshot failed, and there is no append-only file', fix)
  }
  const what = saved
    ? 'snapshots only: a crash loses what came after the last'
    : 'no append-only file: a restart may lose all jobs'
  return warning(check, what, fix)
}

function memory(info: ServerInfo, { isEmbedded }: StoreFacts): Finding {
  const check = 'memory'
  const [used, most] = [numberIn(info, 'used_memory'), numberIn(info, 'maxmemory')]
  if (most > 0) {
    const found = `${megabytes(used)} of ${megabytes(most)}`
    if (used < MEMORY_WARNING * most) return ok(check, found)
    return warning(check, found, 'raise maxmemory, keep results and events for less long, or submit more slowly')
  }
  const found = `${megabytes(used)}, without a limit`
  // The embedded server is for one machine and its user, who sees when it is full.
  if (isEmbedded) return ok(check, found)
  return warning(
    check,
    found,
    'set maxmemory to three quarters of the machine: what ends Redis when it is full loses more',
  )
}

function megabytes(bytes: number): string {
  return `${new Intl.NumberFormat('en', { maximumFractionDigits: 1 }).format(bytes / 1_048_576)} MiB`
}

function replication(info: ServerInfo, { replicasWanted, isEmbedded }: StoreFacts): Finding {
  const check = 'replicas'
  const replicas = numberIn(info, 'connected_slaves')
  if (replicas < replicasWanted) {
    const fix = 'start the replicas, or ask for fewer in durability.replicas; until then every submit fails'
    return failure(check, `${replicas}, and durability asks for ${replicasWanted}`, fix)
  }
  if (replicas > 0 && replicasWanted === 0) {
    const fix = 'set durability: { replicas: 1 } if nothing that was accepted may be lost'
    return warning(check, `${replicas}, and a failover loses what had not reached them`, fix)
  }
  return ok(
    check,
    replicas === 0 ? `none${isEmbedded ? '' : ': what its disk has survives'}` : `${replicas}, waited for`,
  )
}

function connections(info: ServerInfo): Finding {
  const check = 'connections'
  const [clients, most] = [numberIn(info, 'connected_clients'), numberIn(info, 'maxclients')]
  const found = most === 0 ? String(clients) : `${clients} of ${most}`
  if (most === 0 || clients < CLIENTS_WARNING * most) return ok(check, found)
  return warning(check, found, 'raise maxclients, or look who holds so many: redis-cli CLIENT LIST')
}
