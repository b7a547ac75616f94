import { isIP } from 'node:net'
import { InvalidOptionsError } from '../errors.ts'
import type { ApiKey } from './api-keys.ts'

/** True for this machine's own addresses and names, which nobody outside it can reach. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  if (bare === 'localhost' || bare.endsWith('.localhost')) return true
  if (isIP(bare) === 4) return bare.startsWith('127.')
  return bare === '::1' || bare.startsWith('::ffff:127.')
}

/**
 * Without keys everybody who reaches the server is admin, so it may only be reached from its own machine. Throws an
 * InvalidOptionsError that says what to do.
 */
export function refuseOpenBinding(host: string, keys: readonly ApiKey[]): void {
  if (keys.length > 0 || isLoopback(host)) return
  throw new InvalidOptionsError('the server', [
    {
      path: 'host',
      problem: `${JSON.stringify(host)} can be reached from other machines, and there are no API keys: everybody would be admin. Add a key (createApiKey, or "sluice keys create") or listen on 127.0.0.1`,
    },
  ])
}
