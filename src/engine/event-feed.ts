import { isSluiceError } from '../errors.ts'
import { isAfter, readEvents, type StreamEntry } from '../store/event-stream.ts'
import type { QueueKeys } from '../store/keys.ts'
import type { Redis } from '../store/redis.ts'
import { unlessAborted } from './unless-aborted.ts'

// How long one blocking read waits: short enough to notice a connection that went dead.
const BLOCK_MS = 10_000
const RETRY_MS = 100
const PAGE = 500
// What has come last stays in memory for readers that take their time; one that is further behind reads it from Redis.
const RECENT = 1_000

/**
 * What happens in one queue, for all who follow it in this process: they share one connection and one blocking read,
 * however many they are. It is held from the first to the last of them.
 */
export class EventFeed {
  readonly #anyNode: Redis
  readonly #keys: QueueKeys
  readonly #waiting = new Set<() => void>()
  #followers = 0
  #blocking: Redis | undefined
  #recent: StreamEntry[] = []
  /** All that came after this one is in `#recent`. */
  #knownAfter = ''
  #failure: { readonly error: unknown } | undefined

  constructor(redis: Redis, keys: QueueKeys) {
    this.#anyNode = redis
    this.#keys = keys
  }

  get #redis(): Redis {
    return this.#anyNode.at(this.#keys.events)
  }

  join(): void {
    this.#followers += 1
  }

  leave(): void {
    this.#followers -= 1
    if (this.#followers === 0) this.#stop()
  }

  /** Entries after that id; none when it was waited for them for a while, or the signal came first. */
  async next(after: string, signal: AbortSignal | undefined): Promise<readonly StreamEntry[]> {
    let hasWaited = false
    while (!signal?.aborted) {
      const found = await this.#after(after, signal)
      if (!found) continue
      if (found.length > 0 || hasWaited) return found
      this.#start(after)
      // What came while this looked elsewhere has woken nobody here.
      if (this.#recentAfter(after).length > 0) continue
      await this.#change(signal)
      if (this.#failure) throw this.#failure.error
      hasWaited = true
    }
    return []
  }

  /** Undefined when nobody could say, or the signal came first. */
  async #after(id: string, signal: AbortSignal | undefined): Promise<readonly StreamEntry[] | undefined> {
    const isKnown = this.#blocking !== undefined && !isAfter(this.#knownAfter, id)
    if (isKnown) return this.#recentAfter(id)
    try {
      const found = await unlessAborted(readEvents(this.#redis, this.#keys, { from: id, count: PAGE }), signal)
      return found.length > 0 ? found : this.#recentAfter(id)
    } catch (error) {
      if (!signal?.aborted) await afterCut(error)
      return undefined
    }
  }

  #recentAfter(id: string): readonly StreamEntry[] {
    const last = this.#recent.at(-1)
    return last && isAfter(last.id, id) ? this.#recent.filter((entry) => isAfter(entry.id, id)) : []
  }

  #change(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal?.addEventListener('abort', wake, { once: true })
      if (signal?.aborted) wake()
    })
  }

  #start(after: string): void {
    if (this.#blocking) return
    this.#blocking = this.#redis.duplicate()
    this.#knownAfter = after
    this.#failure = undefined
    void this.#read(this.#blocking)
  }

  #stop(): void {
    void this.#blocking?.close()
    this.#blocking = undefined
    this.#recent = []
  }

  async #read(blocking: Redis): Promise<void> {
    while (this.#blocking === blocking) {
      try {
        const from = this.#recent.at(-1)?.id ?? this.#knownAfter
        const found = await readEvents(blocking, this.#keys, { from, count: PAGE, blockMs: BLOCK_MS })
        this.#keep(found)
      } catch (error) {
        if (this.#blocking !== blocking) return
        await afterCut(error).catch((failure: unknown) => this.#fail(failure))
      }
    }
  }

  #keep(found: readonly StreamEntry[]): void {
    const all = this.#recent.concat(found)
    const dropped = Math.max(0, all.length - RECENT)
    if (dropped > 0) this.#knownAfter = (all[dropped - 1] as StreamEntry).id
    this.#recent = all.slice(dropped)
    this.#wakeAll()
  }

  /** Whoever follows is told, and whoever comes after begins anew. */
  #fail(error: unknown): void {
    this.#failure = { error }
    this.#stop()
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake()
  }
}

/** Cut off: the connection comes back by itself, and what happens meanwhile is in the stream. Anything else is an error. */
async function afterCut(error: unknown): Promise<void> {
  if (!isSluiceError(error) || error.code !== 'SLUICE_STORE_UNAVAILABLE') throw error
  await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
}
