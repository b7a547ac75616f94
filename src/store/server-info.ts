import { StoreUnavailableError, UnsupportedRedisError } from '../errors.ts'

/** What a server says about itself, as far as we care. */
export interface ServerInfo {
  /** Changes with every start of the server process. */
  readonly runId: string
  readonly version: string
  readonly maxmemoryPolicy: string
}

const OLDEST_MAJOR = 7

/**
 * Reads the reply of INFO and refuses a server that would lose work: one that is too old for the scripts, or that
 * evicts keys. One that is only not ready (loading, or a replica) is reported as unavailable.
 */
export function checkServer(reply: string, { allowEviction }: { allowEviction: boolean }): ServerInfo {
  const fields = new Map(
    reply.split(/\r?\n/).map((line): [string, string] => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1)]
    }),
  )
  const version = fields.get('redis_version') ?? 'unknown'
  const maxmemoryPolicy = fields.get('maxmemory_policy') ?? 'unknown'
  // Valkey calls itself Redis 7.2.4 for compatibility, and says its own version beside it.
  if (!fields.has('valkey_version') && !(Number.parseInt(version, 10) >= OLDEST_MAJOR)) {
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
  if (fields.get('loading') === '1') throw notReady('it is still loading its data')
  if (fields.get('role') === 'slave') throw notReady('it is a read-only replica')
  return { runId: fields.get('run_id') ?? '', version, maxmemoryPolicy }
}

function notReady(reason: string): StoreUnavailableError {
  return new StoreUnavailableError({ reason, outcome: 'not-sent' })
}
