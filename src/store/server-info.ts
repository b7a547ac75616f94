import { StoreUnavailableError, UnsupportedRedisError } from '../errors.ts'

/** The reply of INFO: names and values, from all its sections. */
export type ServerInfo = ReadonlyMap<string, string>

export function parseInfo(reply: string): ServerInfo {
  const lines = reply.split(/\r?\n/).filter((line) => line.includes(':') && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** 0 for what the server does not say. */
export function numberIn(info: ServerInfo, name: string): number {
  return Number(info.get(name) ?? 0)
}

const OLDEST_MAJOR = 7

/** Why a server that answers may not be used for now, as `reason` of the error. */
export const notReady = { loading: 'it is still loading its data', replica: 'it is a read-only replica' } as const

/**
 * Reads the reply of INFO and refuses a server that would lose work: one that is too old for the scripts, or that
 * evicts keys. One that is only not ready (loading, or a replica) is reported as unavailable.
 * @returns `runId` changes with every start of the server process.
 */
export function checkServer(reply: string, { allowEviction }: { allowEviction: boolean }): { runId: string } {
  const info = parseInfo(reply)
  const version = info.get('redis_version') ?? 'unknown'
  const maxmemoryPolicy = info.get('maxmemory_policy') ?? 'unknown'
  // Valkey calls itself Redis 7.2.4 for compatibility, and says its own version beside it.
  if (!info.has('valkey_version') && !(Number.parseInt(version, 10) >= OLDEST_MAJOR)) {
    throw new UnsupportedRedisError({
      problem: `Redis ${version} is too old: Sluice needs Redis ${OLDEST_MAJOR}.0 or newer, or Valkey.`,
      version,
      maxmemoryPolicy,
    })
  }
  if (maxmemoryPolicy !== 'noeviction' && !allowEviction) {
    throw new UnsupportedRedisError({
      problem: `Redis would evict jobs when its memory is full: its maxmemory-policy is ${maxmemoryPolicy}. Set it to noeviction, or accept the loss with allowEviction: true.`,
      version,
      maxmemoryPolicy,
    })
  }
  if (info.get('loading') === '1') throw unavailable(notReady.loading)
  if (info.get('role') === 'slave') throw unavailable(notReady.replica)
  return { runId: info.get('run_id') ?? '' }
}

function unavailable(reason: string): StoreUnavailableError {
  return new StoreUnavailableError({ reason, outcome: 'not-sent' })
}
