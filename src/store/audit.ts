import type { Redis } from './redis.ts'
import { isStreamId } from './uint64.ts'

/** One change that somebody made through the server. */
export interface AuditEntry {
  /** When it was answered, in ms since 1970. */
  readonly at: number
  /** Id of the API key, or `local` on a server without keys. */
  readonly who: string
  readonly role: string
  readonly address: string
  /** Which operation: `changeTenant`. */
  readonly operation: string
  /** What it was done to: `/v1/queues/mail/tenants/acme`. */
  readonly target: string
  /** What was asked for, without secrets, cut when it is long; undefined when the request had no body of JSON. */
  readonly change?: string | undefined
  /** The HTTP status that was answered. */
  readonly status: number
  readonly requestId: string
}

/** An entry as it is kept. */
export interface KeptAuditEntry extends AuditEntry {
  /** Its place in the log; entries with a greater one came later. */
  readonly id: string
}

/** Of an entry; Redis gives none the id 0-0. */
export function isAuditId(id: string): boolean {
  return isStreamId(id) && id.includes('-') && /[1-9]/.test(id)
}

/** The newest changes, in a stream of bounded length. */
export class AuditStore {
  readonly #redis: Redis
  readonly #key: string
  readonly #keep: number

  /** @param parts.keep - How many entries are kept, roughly: Redis trims by blocks. */
  constructor({ redis, prefix, keep }: { redis: Redis; prefix: string; keep: number }) {
    this.#redis = redis
    this.#key = `${prefix}:{http}:audit`
    this.#keep = keep
  }

  async add(entry: AuditEntry): Promise<void> {
    await this.#redis.call('XADD', this.#key, 'MAXLEN', '~', this.#keep, '*', 'entry', JSON.stringify(entry))
  }

  /** Newest first, older than `before` where that is given. */
  async list(page: { before?: string | undefined; count: number }): Promise<KeptAuditEntry[]> {
    const end = page.before === undefined ? '+' : `(${page.before}`
    const reply = await this.#redis.call('XREVRANGE', this.#key, end, '-', 'COUNT', page.count)
    return (reply as [string, string[]][]).map(([id, fields]) => ({ id, ...JSON.parse(fields[1] ?? '{}') }))
  }
}
