import { TooFewReplicasError } from '../errors.ts'
import type { DurabilitySettings } from './redis-options.ts'
import type { Redis } from './redis-port.ts'

// What lua/requests.lua sets: the write below changes nothing.
const REMEMBERED_FOR_MS = 60_000

interface Batch {
  /** A key that may be touched. */
  readonly key: string
  readonly answered: Promise<number>
}

/**
 * Waits until replicas have what a server has acknowledged. It has a connection of its own, because WAIT holds up
 * everything behind it: there it makes one small write, and waits for that one. Whatever the server wrote before it is
 * before it in the stream of the replicas too. Calls that come while one waits share the next.
 */
export class ReplicaWait {
  readonly #redis: Redis
  readonly #settings: DurabilitySettings
  #running: Promise<unknown> = Promise.resolve()
  #next: Batch | undefined

  /** @param redis - A connection for this alone. */
  constructor(redis: Redis, settings: DurabilitySettings) {
    this.#redis = redis
    this.#settings = settings
  }

  /**
   * Resolves with true when enough replicas have all that the server `serverId` has acknowledged before, with false when
   * another server has taken its place: nobody knows then what that one has. Rejects with TooFewReplicasError, or when
   * the store is not available.
   * @param key - Of the client: its expiry is set once more.
   */
  async confirm(key: string, serverId: string): Promise<boolean> {
    await this.#redis.ready()
    if (this.#redis.serverId !== serverId) return false
    const answered = await this.#batch(key).answered
    // A server that hung may answer after another has taken its place, with a replica that has not heard of it either.
    await this.#redis.ready()
    if (this.#redis.serverId !== serverId) return false
    const { replicas, timeoutMs } = this.#settings
    if (answered < replicas) throw new TooFewReplicasError({ wanted: replicas, answered, timeoutMs })
    return true
  }

  /** The next that starts, for all who come before it does. */
  #batch(key: string): Batch {
    if (this.#next) return this.#next
    const answered = this.#running.then(() => {
      this.#next = undefined
      return this.#wait(key)
    })
    this.#running = answered.catch(() => {})
    this.#next = { key, answered }
    return this.#next
  }

  /** Both in one turn of the event loop, so that both go out on one connection. */
  async #wait(key: string): Promise<number> {
    const { replicas, timeoutMs } = this.#settings
    const [, answered] = await Promise.all([
      this.#redis.call('PEXPIRE', key, REMEMBERED_FOR_MS),
      this.#redis.block('WAIT', [replicas, timeoutMs], timeoutMs),
    ])
    return Number(answered)
  }
}
