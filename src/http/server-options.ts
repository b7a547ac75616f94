import type { Writable } from 'node:stream'
import {
  boolean,
  callback,
  checkOptions,
  group,
  integer,
  oneOf,
  optional,
  type Rule,
  type Settings,
} from '../assert.ts'
import type { Queue } from '../engine/queue.ts'
import { Sluice } from '../sluice.ts'
import type { AuditEntry } from '../store/audit.ts'
import type { ApiKey } from './api-keys.ts'

/** Options of `createServer`. */
export interface ServerOptions {
  readonly sluice: Sluice
  /** The queues the server knows, by name; of no other it says anything. */
  readonly queues: Readonly<Record<string, Queue>>
  /**
   * Who may do what. Without keys everybody is admin, and only requests that come from this machine and name it are
   * served.
   * @default none
   */
  readonly keys?: readonly ApiKey[]
  /**
   * Where structured lines about requests go, secrets taken out; false for nowhere.
   * @default nowhere
   */
  readonly log?: { readonly level?: LogLevel; readonly stream: Writable } | false
  /** Told of every change that was made through the server, beside the audit log that Redis keeps. */
  readonly onChange?: (entry: AuditEntry) => void
  /**
   * The largest body of JSON. A longer list of jobs is sent as NDJSON, which has no bound.
   * @default 1_048_576
   */
  readonly maxBodyBytes?: number
  /**
   * The longest line of NDJSON.
   * @default 1_048_576
   */
  readonly maxLineBytes?: number
  /**
   * How long the next piece of an NDJSON body may be awaited. The time the queue itself takes is not counted.
   * @default 30_000
   */
  readonly idleBodyMs?: number
  /**
   * How long somebody who downloads results may take nothing of them.
   * @default 300_000
   */
  readonly idleReaderMs?: number
  /**
   * How long the whole of any other body may take to arrive.
   * @default 30_000
   */
  readonly bodyTimeoutMs?: number
  /**
   * How long the headers of a request may take to arrive.
   * @default 15_000
   */
  readonly headersTimeoutMs?: number
  /**
   * How long a request that is no stream may take once it has arrived; after that 503 is answered.
   * @default 10_000
   */
  readonly handlerTimeoutMs?: number
  /**
   * How long running uploads and downloads may go on after `close`.
   * @default 10_000
   */
  readonly closeGraceMs?: number
  /**
   * How often a stream of events that has nothing to say says so, to keep proxies from closing it.
   * @default 15_000
   */
  readonly heartbeatMs?: number
  /**
   * Streams of events that may be open at once; a further one is answered with 429.
   * @default 500
   */
  readonly maxStreams?: number
  /**
   * Requests a window for each key, and for each address without one, in this process; false for no bound.
   * @default with keys 1_000 in 10 s, without keys false
   */
  readonly rateLimit?: { readonly max: number; readonly windowMs: number } | false
  /**
   * Entries of the audit log that are kept, roughly.
   * @default 10_000
   */
  readonly keepAudit?: number
  /**
   * Believe `X-Forwarded-For` about addresses: only behind a proxy that sets it.
   * @default false
   */
  readonly trustProxy?: boolean
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const
type LogLevel = (typeof logLevels)[number]

const sluiceRule: Rule<Sluice> = (value, path, report) => {
  if (!(value instanceof Sluice)) report(path, 'must be a Sluice')
  return value as Sluice
}

const queuesRule: Rule<ReadonlyMap<string, Queue>> = (value, path, report) => {
  const entries = Object.entries(Object(value) as Record<string, Queue>)
  if (entries.length === 0) report(path, 'must have at least one queue, such as { mail: sluice.queue("mail") }')
  for (const [name, queue] of entries) {
    if (queue?.name !== name) report(`${path}.${name}`, `must be the queue of this name, not ${String(queue?.name)}`)
  }
  return new Map(entries)
}

const keysRule: Rule<readonly ApiKey[]> = (value, path, report) => {
  if (value !== undefined && !Array.isArray(value)) report(path, 'must be a list of keys')
  return Array.isArray(value) ? value : []
}

const streamRule: Rule<Writable> = (value, path, report) => {
  if (typeof (value as Writable | undefined)?.write !== 'function') report(path, 'must be a writable stream')
  return value as Writable
}

const logRule = unlessOff(group({ level: oneOf(logLevels, { default: 'info' }), stream: streamRule }))

const rateRule = unlessOff(
  group({ max: integer({ min: 1, max: 1_000_000_000 }), windowMs: integer({ min: 100, max: 86_400_000 }) }),
)

/** False: switched off. */
function unlessOff<T>(rule: Rule<T>): Rule<T | false | undefined> {
  return optional((value, path, report) => (value === false ? value : rule(value, path, report)))
}

const hour = 3_600_000
const mebibyte = 1_048_576

const serverRules = {
  sluice: sluiceRule,
  queues: queuesRule,
  keys: keysRule,
  log: logRule,
  onChange: optional(callback<(entry: AuditEntry) => void>()),
  maxBodyBytes: integer({ min: 1_024, max: 256 * mebibyte, default: mebibyte }),
  maxLineBytes: integer({ min: 1_024, max: 256 * mebibyte, default: mebibyte }),
  idleBodyMs: integer({ min: 10, max: hour, default: 30_000 }),
  idleReaderMs: integer({ min: 10, max: 24 * hour, default: 300_000 }),
  bodyTimeoutMs: integer({ min: 10, max: hour, default: 30_000 }),
  headersTimeoutMs: integer({ min: 10, max: hour, default: 15_000 }),
  handlerTimeoutMs: integer({ min: 10, max: hour, default: 10_000 }),
  closeGraceMs: integer({ min: 0, max: hour, default: 10_000 }),
  heartbeatMs: integer({ min: 10, max: hour, default: 15_000 }),
  maxStreams: integer({ min: 1, max: 1_000_000, default: 500 }),
  rateLimit: rateRule,
  keepAudit: integer({ min: 1, max: 10_000_000, default: 10_000 }),
  trustProxy: boolean({ default: false }),
}

export type ServerSettings = Settings<typeof serverRules>

export function checkServerOptions(options: ServerOptions): ServerSettings {
  return checkOptions('the server', options, serverRules)
}
