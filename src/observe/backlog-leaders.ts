import type { QueueKeys } from '../store/keys.ts'
import { fromToken } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import { BACKLOGS_AT_ONCE, readBacklogs } from '../store/scripts/read-backlogs.ts'
import { readTenantPage } from '../store/tenant-tokens.ts'

/** As many tenants as are named one by one. */
const LEADERS = 50
/** Pages of tenants looked through in one go: Redis is asked for a ms each, and other calls come in between. */
const PAGES_AT_ONCE = 10

type Backlogs = ReadonlyMap<string, number>

/**
 * The tenants of a queue with the most waiting jobs. Up to 5,000 tenants are looked through at each question; with more,
 * a large backlog may be found some questions later. What is said of a tenant is always what it has now.
 */
export class BacklogLeaders {
  readonly #redis: Redis
  readonly #keys: QueueKeys
  /** Of the last whole round through all tenants, and of the one under way. */
  #leaders: Backlogs = new Map()
  #found: Backlogs = new Map()
  #cursor: string | undefined
  #reading: Promise<Backlogs> | undefined

  constructor(redis: Redis, keys: QueueKeys) {
    this.#redis = redis
    this.#keys = keys
  }

  /** Tenant → its waiting jobs, the most first, none without any. Whoever asks meanwhile gets the same answer. */
  read(): Promise<Backlogs> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #read(): Promise<Backlogs> {
    for (let pages = 0; pages < PAGES_AT_ONCE; pages++) {
      await this.#lookThrough()
      if (this.#cursor === undefined) break
    }
    const known = [...new Set([...this.#leaders.keys(), ...this.#found.keys()])]
    const now = best(await this.#backlogsOf(known))
    return new Map([...now].map(([token, waiting]) => [fromToken(token), waiting]))
  }

  async #lookThrough(): Promise<void> {
    const page = await readTenantPage(this.#redis, this.#keys, { cursor: this.#cursor, limit: BACKLOGS_AT_ONCE })
    const backlogs = await this.#backlogsOf(page.tokens)
    this.#found = best(new Map([...this.#found, ...backlogs]))
    this.#cursor = page.cursor
    if (page.cursor !== undefined) return
    this.#leaders = this.#found
    this.#found = new Map()
  }

  async #backlogsOf(tokens: readonly string[]): Promise<Backlogs> {
    const waiting = await readBacklogs(this.#redis, this.#keys, tokens)
    return new Map(tokens.map((token, at) => [token, waiting[at] ?? 0]))
  }
}

function best(backlogs: Backlogs): Backlogs {
  const waiting = [...backlogs].filter(([, count]) => count > 0)
  return new Map(waiting.sort(([, a], [, b]) => b - a).slice(0, LEADERS))
}
