import { boolean, checkOptions, integer, optional, parsed, type Rule, type Settings, show, text } from '../assert.ts'
import { InvalidOptionsError } from '../errors.ts'
import type { RedisAddress } from './connection.ts'

/** Where the jobs live: a private server of this machine, or one that is there already. */
export type RedisTarget = 'embedded' | RedisAddress

const addressRules = {
  host: optional(text()),
  port: optional(integer({ min: 1, max: 65_535 })),
  path: optional(text()),
  username: optional(text()),
  password: optional(text({ secret: true })),
  db: optional(integer({ min: 0 })),
  tls: optional(tlsRule()),
}

export const redisRules = {
  redis: redisTarget(),
  commandTimeoutMs: integer({ min: 10, max: 600_000, default: 3_000 }),
  allowEviction: boolean({ default: false }),
  connectionName: text({ pattern: { test: /^[!-~]+$/, words: 'printable ASCII without spaces' }, default: 'sluice' }),
  dataDir: text({ default: '.sluice' }),
}

export type RedisSettings = Settings<typeof redisRules>

export interface RedisOptions {
  /**
   * `'embedded'` for a private redis-server of this machine under `dataDir`; a URL (`redis://`, `rediss://`), the
   * path of a unix socket, or an address. There is no default: a process with a missing URL must not get limits of
   * its own.
   */
  redis: string | RedisAddress
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

/** The `redis` option of everything that takes one: `'embedded'`, a URL, the path of a unix socket or an address. */
function redisTarget(): Rule<RedisTarget> {
  const fromText = parsed(parseTarget)
  return (value, path, report) => {
    if (value === undefined || typeof value === 'string') {
      if (value !== undefined) return fromText(value, path, report)
      report(path, "is required: a URL such as 'redis://host:6379', an address, or 'embedded' for a server of its own")
      return 'embedded'
    }
    try {
      return checkOptions(path, value, addressRules)
    } catch (error) {
      if (!(error instanceof InvalidOptionsError)) throw error
      for (const each of error.problems) report(`${path}.${each.path}`, each.problem)
      return 'embedded'
    }
  }
}

function parseTarget(value: unknown): RedisTarget {
  const target = String(value)
  if (target === 'embedded') return 'embedded'
  if (target.startsWith('/')) return { path: target }
  let url: URL
  try {
    url = new URL(target)
  } catch {
    // The text may hold a password: it is not repeated.
    throw new Error("must be a URL such as 'redis://host:6379', the path of a unix socket, or 'embedded'")
  }
  if (url.protocol === 'unix:') return { path: decodeURIComponent(url.pathname) }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new Error(`must begin with redis://, rediss:// or unix://, not ${show(url.protocol)}`)
  }
  const db = url.pathname.replace(/^\//, '') || (url.searchParams.get('db') ?? '')
  if (!/^\d*$/.test(db)) throw new Error(`must name its database by number, not ${show(db)}`)
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: url.port === '' ? 6379 : Number(url.port),
    ...credentials(url),
    ...(db === '' ? {} : { db: Number(db) }),
    ...(url.protocol === 'rediss:' ? { tls: true } : {}),
  }
}

function credentials(url: URL): Pick<RedisAddress, 'username' | 'password'> {
  return {
    ...(url.username === '' ? {} : { username: decodeURIComponent(url.username) }),
    ...(url.password === '' ? {} : { password: decodeURIComponent(url.password) }),
  }
}

function tlsRule(): Rule<boolean | object> {
  return (value, path, report) => {
    if (typeof value !== 'boolean' && (typeof value !== 'object' || value === null)) {
      report(path, `must be true, false or the options of tls.connect, not ${show(value)}`)
    }
    return value as boolean | object
  }
}
