import { isIP } from 'node:net'
import { InvalidOptionsError } from '../errors.ts'
import type { ApiKey } from './api-keys.ts'
import type { App } from './context.ts'

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

/**
 * Nobody need think of it: `listen` refuses before anything is bound. A hook of Fastify's would come after that, and what it
 * throws is only logged.
 */
export function guardListening(app: App, keys: readonly ApiKey[]): void {
  const listen = app.listen.bind(app) as (...given: unknown[]) => unknown
  const guarded = (options: { host?: string; path?: string } = {}, callback?: (error: Error) => void) => {
    try {
      // A socket in the file system has no other machines.
      if (options.path === undefined) refuseOpenBinding(options.host ?? 'localhost', keys)
    } catch (error) {
      return callback ? callback(error as Error) : Promise.reject(error)
    }
    return callback ? listen(options, callback) : listen(options)
  }
  app.listen = guarded as App['listen']
}
