import { checkOptions, group, integer, optional, parsed, type Rule, record, show, text } from '../assert.ts'
import { InvalidOptionsError } from '../errors.ts'
import type { RedisAddress } from './connection.ts'

/** One of several servers: where it listens. */
export interface RedisNode {
  /** @default 'localhost' */
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** A master and its replicas, watched by sentinels that make one of them the master when it fails. */
export interface RedisSentinels {
  /** The sentinels, all of them: one that cannot be reached does not matter then. Port 26379 unless it is given. */
  readonly sentinels: readonly (string | RedisNode)[]
  /** What the sentinels call the master: `sentinel monitor <name> …`. */
  readonly name: string
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly db?: number | undefined
  /** To the servers. True for the defaults of Node, or what `tls.connect` takes. */
  readonly tls?: boolean | object | undefined
  readonly sentinelUsername?: string | undefined
  readonly sentinelPassword?: string | undefined
  /** To the sentinels. */
  readonly sentinelTls?: boolean | object | undefined
  /**
   * Where servers are reached that name each other by addresses of their own network, as in containers:
   * `{ '10.0.0.1:6379': 'localhost:16379' }`.
   */
  readonly natMap?: Readonly<Record<string, string | RedisNode>> | undefined
}

/** A Redis Cluster. */
export interface RedisCluster {
  /** Some of its nodes: the others are learned from them. Port 6379 unless it is given. */
  readonly cluster: readonly (string | RedisNode)[]
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** True for the defaults of Node, or what `tls.connect` takes. */
  readonly tls?: boolean | object | undefined
  /**
   * Where servers are reached that name each other by addresses of their own network, as in containers:
   * `{ '10.0.0.1:6379': 'localhost:16379' }`.
   */
  readonly natMap?: Readonly<Record<string, string | RedisNode>> | undefined
}

type Checked<T, Name extends keyof T> = Omit<T, Name | 'natMap'> & {
  readonly [Each in Name]: readonly RedisNode[]
} & { readonly natMap?: Readonly<Record<string, RedisNode>> | undefined }

export type SentinelTarget = Checked<RedisSentinels, 'sentinels'>
export type ClusterTarget = Checked<RedisCluster, 'cluster'>

/** Where the jobs live: a private server of this machine, or what is there already. */
export type RedisTarget = 'embedded' | RedisAddress | SentinelTarget | ClusterTarget

export function isSentinel(target: RedisTarget): target is SentinelTarget {
  return typeof target === 'object' && 'sentinels' in target
}

export function isCluster(target: RedisTarget): target is ClusterTarget {
  return typeof target === 'object' && 'cluster' in target
}

const SENTINEL_PORT = 26_379
const SERVER_PORT = 6379

const credentialRules = {
  username: optional(text()),
  password: optional(text({ secret: true })),
  tls: optional(tlsRule()),
}

const addressRules = {
  host: optional(text()),
  port: optional(integer({ min: 1, max: 65_535 })),
  path: optional(text()),
  db: optional(integer({ min: 0 })),
  ...credentialRules,
}

const sentinelRules = {
  sentinels: nodes(SENTINEL_PORT),
  name: text(),
  db: optional(integer({ min: 0 })),
  ...credentialRules,
  sentinelUsername: optional(text()),
  sentinelPassword: optional(text({ secret: true })),
  sentinelTls: optional(tlsRule()),
  natMap: optional(record(oneNode(SERVER_PORT))),
}

const clusterRules = {
  cluster: nodes(SERVER_PORT),
  ...credentialRules,
  db: optional(noDatabase()),
  natMap: optional(record(oneNode(SERVER_PORT))),
}

/** The `redis` option of everything that takes one. */
export function redisTarget(): Rule<RedisTarget> {
  const fromText = parsed(parseTarget)
  return (value, path, report) => {
    if (value === undefined || typeof value === 'string') {
      if (value !== undefined) return fromText(value, path, report)
      report(path, "is required: a URL such as 'redis://host:6379', an address, or 'embedded' for a server of its own")
      return 'embedded'
    }
    try {
      return checkObject(path, value)
    } catch (error) {
      if (!(error instanceof InvalidOptionsError)) throw error
      for (const each of error.problems) report(`${path}.${each.path}`, each.problem)
      return 'embedded'
    }
  }
}

function checkObject(path: string, value: unknown): RedisTarget {
  const has = (name: string) => Object.hasOwn(Object(value), name)
  if (has('sentinels')) return checkOptions(path, value, sentinelRules)
  if (!has('cluster')) return checkOptions(path, value, addressRules)
  const { db: _, ...cluster } = checkOptions(path, value, clusterRules)
  return cluster
}

/** A list of `host:port` and `{ host, port }`. */
function nodes(defaultPort: number): Rule<readonly RedisNode[]> {
  return (value, path, report) => {
    if (!Array.isArray(value) || value.length === 0) {
      report(path, `must be a list of at least one node, such as ['host:${defaultPort}'], not ${show(value)}`)
      return []
    }
    const rule = oneNode(defaultPort)
    return value.map((each: unknown, index) => rule(each, `${path}.${index}`, report))
  }
}

function oneNode(defaultPort: number): Rule<RedisNode> {
  const asObject = group({
    host: text({ default: 'localhost' }),
    port: integer({ min: 1, max: 65_535, default: defaultPort }),
  })
  return (value, path, report) => {
    if (typeof value !== 'string') return asObject(value, path, report)
    const found = parseNode(value, defaultPort)
    if (!found) report(path, `must be a host and a port, such as 'host:${defaultPort}', not ${show(value)}`)
    return found ?? {}
  }
}

/** `host`, `host:port`, `[::1]:port`; undefined: none of them. */
function parseNode(value: string, defaultPort: number): RedisNode | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/@[\]]+))(?::(\d{1,5}))?$/.exec(value)
  const port = match?.[3] === undefined ? defaultPort : Number(match[3])
  const host = match?.[1] ?? match?.[2]
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port }
}

function noDatabase(): Rule<undefined> {
  return (value, path, report) => {
    if (value !== 0) report(path, 'cannot be chosen: a Cluster has one database, 0')
    return undefined
  }
}

const SCHEMES = 'redis://, rediss://, redis-sentinel://, redis-cluster:// or unix://'

function parseTarget(value: unknown): RedisTarget {
  const target = String(value)
  if (target === 'embedded') return 'embedded'
  if (target.startsWith('/')) return { path: target }
  const several = /^(rediss?)-(sentinel|cluster):\/\/(?:([^@/]*)@)?([^/?#]*)(\/.*)?$/.exec(target)
  if (several) return several[2] === 'sentinel' ? parseSentinel(several) : parseCluster(several)
  let url: URL
  try {
    url = new URL(target)
  } catch {
    // The text may hold a password: it is not repeated.
    throw new Error("must be a URL such as 'redis://host:6379', the path of a unix socket, or 'embedded'")
  }
  if (url.protocol === 'unix:') return { path: decodeURIComponent(url.pathname) }
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw new Error(`must begin with ${SCHEMES}, not ${show(url.protocol)}`)
  }
  const db = url.pathname.replace(/^\//, '') || (url.searchParams.get('db') ?? '')
  if (!/^\d*$/.test(db)) throw new Error(`must name its database by number, not ${show(db)}`)
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1') || 'localhost',
    port: url.port === '' ? SERVER_PORT : Number(url.port),
    ...credentials(url.username, url.password),
    ...(db === '' ? {} : { db: Number(db) }),
    ...(url.protocol === 'rediss:' ? { tls: true } : {}),
  }
}

/** `redis-sentinel://[user:password@]host:port,host:port/name[/db]`; `rediss-`: TLS to servers and sentinels. */
function parseSentinel([, scheme, , user = '', hosts = '', path = '']: RegExpExecArray): SentinelTarget {
  const [, name = '', db = '', ...rest] = path.split('/')
  if (name === '' || rest.length > 0 || !/^\d*$/.test(db)) {
    throw new Error("must name the master after the sentinels: 'redis-sentinel://host:26379,host:26379/mymaster'")
  }
  return {
    sentinels: parseNodes(hosts, SENTINEL_PORT),
    name: decodeURIComponent(name),
    ...userOf(user),
    ...(db === '' ? {} : { db: Number(db) }),
    ...(scheme === 'rediss' ? { tls: true, sentinelTls: true } : {}),
  }
}

/** `redis-cluster://[user:password@]host:port,host:port`; `rediss-`: TLS. */
function parseCluster([, scheme, , user = '', hosts = '', path = '']: RegExpExecArray): ClusterTarget {
  if (path !== '' && path !== '/' && path !== '/0') throw new Error('must name no database: a Cluster has one, 0')
  return {
    cluster: parseNodes(hosts, SERVER_PORT),
    ...userOf(user),
    ...(scheme === 'rediss' ? { tls: true } : {}),
  }
}

function parseNodes(hosts: string, defaultPort: number): RedisNode[] {
  return hosts.split(',').map((each) => {
    const found = parseNode(each, defaultPort)
    if (!found)
      throw new Error(`must list hosts and ports, 'host:${defaultPort},host:${defaultPort}', not ${show(each)}`)
    return found
  })
}

function userOf(user: string): Pick<RedisAddress, 'username' | 'password'> {
  const colon = user.indexOf(':')
  return colon < 0 ? credentials(user, '') : credentials(user.slice(0, colon), user.slice(colon + 1))
}

function credentials(username: string, password: string): Pick<RedisAddress, 'username' | 'password'> {
  return {
    ...(username === '' ? {} : { username: decodeURIComponent(username) }),
    ...(password === '' ? {} : { password: decodeURIComponent(password) }),
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
