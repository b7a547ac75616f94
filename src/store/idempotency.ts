import type { Redis } from './redis.ts'

/** An answer as it was given, to be given again. */
export interface StoredAnswer {
  readonly status: number
  readonly body: string
  readonly location?: string | undefined
}

/**
 * `first`: nobody has used the key; it is taken now. `running`: whoever took it has not answered yet. `other`: it was
 * used for another request. `answered`: this is what was answered.
 */
export type TakenKey =
  | { readonly word: 'first' }
  | { readonly word: 'running' }
  | { readonly word: 'other' }
  | { readonly word: 'answered'; readonly answer: StoredAnswer }

interface Entry {
  readonly fingerprint: string
  readonly answer?: StoredAnswer
}

// If its process dies before it has answered, a request can be repeated after this long.
const RUNNING_MS = 60_000
const ANSWERED_MS = 86_400_000

/** Remembers under the keys of callers what was asked and what was answered, for a day. */
export class IdempotencyStore {
  readonly #redis: Redis
  readonly #start: string

  constructor({ redis, prefix }: { redis: Redis; prefix: string }) {
    this.#redis = redis
    this.#start = `${prefix}:{http}:idempotency:`
  }

  /** @param key - A digest of who asks, for what, and the key they chose. */
  async take(key: string, fingerprint: string): Promise<TakenKey> {
    const name = this.#start + key
    const taken = await this.#redis.call('SET', name, JSON.stringify({ fingerprint }), 'NX', 'PX', RUNNING_MS, 'GET')
    if (taken === null) return { word: 'first' }
    const entry = JSON.parse(String(taken)) as Entry
    if (entry.fingerprint !== fingerprint) return { word: 'other' }
    return entry.answer ? { word: 'answered', answer: entry.answer } : { word: 'running' }
  }

  async answer(key: string, fingerprint: string, answer: StoredAnswer): Promise<void> {
    const entry: Entry = { fingerprint, answer }
    await this.#redis.call('SET', this.#start + key, JSON.stringify(entry), 'PX', ANSWERED_MS)
  }

  /** The request failed: the key is free for another try. */
  async release(key: string): Promise<void> {
    await this.#redis.call('DEL', this.#start + key)
  }
}
