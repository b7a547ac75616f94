import { isSluiceError, type Sluice } from '../../index.ts'
import { notReady } from '../../store/server-info.ts'
import { toCliError } from '../cli-error.ts'
import type { StoreConfig } from '../store-config.ts'
import { withoutCredentials } from '../without-credentials.ts'
import { type Finding, failure, ok } from './finding.ts'

/** Whether there is a store that can be used. */
export async function checkReach(sluice: Sluice, { redis }: StoreConfig): Promise<Finding> {
  const name = typeof redis === 'string' ? withoutCredentials(redis) : 'redis'
  const before = performance.now()
  try {
    await sluice.ready()
  } catch (error) {
    return failure('redis', toCliError(error).message, fixOf(error, redis))
  }
  return ok('redis', `${name} answers after ${Math.round(performance.now() - before)} ms`)
}

/** What to do about a store that cannot be used, by what it says. */
export function fixOf(error: unknown, redis: StoreConfig['redis']): string {
  if (isSluiceError(error) && error.code === 'SLUICE_UNSUPPORTED_REDIS') return 'use Redis 7.0 or newer, or Valkey'
  const reason = isSluiceError(error) && 'reason' in error ? error.reason : undefined
  if (reason === notReady.loading) return 'wait until it has'
  if (reason === notReady.replica) return 'name the master, or the sentinels that know it'
  return redis === 'embedded' ? 'see what it says' : 'start it, or name another with --redis or in the config file'
}
