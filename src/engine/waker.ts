import type { Redis } from '../store/redis.ts'
import { type Rest, type Resting, stayIdle } from '../store/scripts/stay-idle.ts'
import { LastingError } from './lasting-error.ts'
import type { Log } from './log.ts'

// Every sleeper looks for itself this often, whoever else of the process is woken meanwhile. A wake-up is waited for no
// longer than until then: short enough to notice a connection that went dead, long enough to stay below one request every
// five seconds together with the claim that follows.
const HEARTBEAT_MS = 12_000
const RETRY_MS = 100
// Queues kept idle by one call: its script must not take long.
const RESTING_AT_ONCE = 100

export interface Sleeper {
  /** The list this process is woken by, from when it is added: before, its queue may turn out to live elsewhere. */
  readonly wakeKey: string
  /** Woken; or it is time to look for itself, also after the connection was lost: `what` is undefined then. */
  onWake(what: string | undefined): void
  /** The store, or this process, stood still: what it does by itself at an instant came so much later. */
  onLate?(ms: number): void
  /**
   * At a heartbeat: it has nothing to tell and goes on waiting, if it is told that there is nothing for it. All who do are
   * asked for in one call, so that a process with many queues sends no more than one with a single one. Undefined: it looks
   * for itself.
   */
  rest?(): RestingSleeper | undefined
}

export interface RestingSleeper extends Resting {
  /** Called once; until then it asks for nothing by itself. */
  onRest(rest: Rest): void
}

/**
 * Wakes the sleepers of a process, by one long blocking read for all of them. In a Cluster a read can wait on lists of
 * one slot only: there each slot with sleepers has its own.
 */
export class Waker {
  readonly #redis: Redis
  readonly #heartbeatMs: number
  readonly #log: Log
  readonly #readers = new Map<Redis, WakeReader>()
  /** Where each was added: by then its key was known, and it is taken away from there whatever that is by now. */
  readonly #places = new Map<Sleeper, { readonly reader: WakeReader; readonly key: string }>()

  /** @param options - `heartbeatMs`: how often every sleeper looks for itself; another only in tests. */
  constructor(redis: Redis, options: { log: Log; heartbeatMs?: number }) {
    this.#redis = redis
    this.#heartbeatMs = options.heartbeatMs ?? HEARTBEAT_MS
    this.#log = options.log
  }

  /** Also under a new key: it is not woken by the old one any more. */
  add(sleeper: Sleeper): void {
    const key = sleeper.wakeKey
    if (this.#places.get(sleeper)?.key === key) return
    this.remove(sleeper)
    const server = this.#redis.at(key)
    const reader = this.#readers.get(server) ?? new WakeReader(server, this.#heartbeatMs, this.#log)
    this.#readers.set(server, reader)
    this.#places.set(sleeper, { reader, key })
    reader.add(key, sleeper)
  }

  remove(sleeper: Sleeper): void {
    const place = this.#places.get(sleeper)
    this.#places.delete(sleeper)
    place?.reader.remove(place.key)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#readers.values()].map((reader) => reader.close()))
  }
}

/**
 * A blocking read on the wake lists of its sleepers, on a connection of its own. Runs from the first sleeper to `close`.
 * A change of the list of sleepers ends the read under way by a wake-up.
 */
class WakeReader {
  readonly #redis: Redis
  readonly #heartbeatMs: number
  readonly #sleepers = new Map<string, Sleeper>()
  /** The lists of the read under way: also of sleepers that have left meanwhile. Empty between two reads. */
  #waitsOn: readonly string[] = []
  #blocking: Redis | undefined
  #loop: Promise<void> | undefined
  /** Of the next heartbeat, by the monotonic clock of the process. */
  #beatAt = 0
  #isClosed = false
  readonly #lastingError: LastingError

  constructor(redis: Redis, heartbeatMs: number, log: Log) {
    this.#redis = redis
    this.#lastingError = new LastingError(log, {
      event: 'worker.wake-ups-unheard',
      message: `Wake-ups cannot be waited for; work is looked for every ${RETRY_MS} ms instead`,
    })
    this.#heartbeatMs = heartbeatMs
  }

  add(key: string, sleeper: Sleeper): void {
    this.#sleepers.set(key, sleeper)
    if (this.#loop) this.#interrupt()
    else this.#loop = this.#run()
  }

  remove(key: string): void {
    this.#sleepers.delete(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#blocking?.close()
    await this.#loop
  }

  /** Ends the read under way through a list that it surely waits on; the next one knows all sleepers by itself. */
  #interrupt(): void {
    const [first] = this.#waitsOn
    if (first === undefined) return
    // A failed interruption only means that the new sleeper is heard of one block later.
    this.#redis.call('RPUSH', first, 'work').then(
      () => this.#redis.call('PEXPIRE', first, 60_000).catch(() => {}),
      () => {},
    )
  }

  async #run(): Promise<void> {
    this.#blocking = this.#redis.duplicate()
    this.#beatLater()
    while (!this.#isClosed) {
      if (this.#sleepers.size === 0) {
        this.#loop = undefined
        await this.#blocking.close()
        return
      }
      try {
        const found = await this.#wait(this.#blocking)
        this.#lastingError.mended()
        if (found) this.#sleepers.get(found[0])?.onWake(found[1])
      } catch (error) {
        // Cut off: the connection comes back by itself, and whoever was to be woken meanwhile looks for itself.
        if (this.#isClosed) return
        this.#lastingError.failed(error)
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
        this.#beatLater()
        for (const sleeper of this.#sleepers.values()) sleeper.onWake(undefined)
      }
      if (performance.now() >= this.#beatAt) this.#beat()
    }
  }

  #beatLater(): void {
    this.#beatAt = performance.now() + this.#heartbeatMs
  }

  #beat(): void {
    this.#beatLater()
    const resting: RestingSleeper[] = []
    for (const sleeper of this.#sleepers.values()) {
      const rest = sleeper.rest?.()
      if (rest) resting.push(rest)
      else sleeper.onWake(undefined)
    }
    for (let from = 0; from < resting.length; from += RESTING_AT_ONCE) {
      void this.#stayIdle(resting.slice(from, from + RESTING_AT_ONCE))
    }
  }

  async #stayIdle(resting: readonly RestingSleeper[]): Promise<void> {
    // Without an answer each of them looks for itself: a claim is repeated, and says what is wrong.
    const sentAt = performance.now()
    const rests = await stayIdle(this.#redis, resting).catch((): Rest[] => [])
    this.#late(performance.now() - sentAt)
    for (const [at, sleeper] of resting.entries()) sleeper.onRest(rests[at] ?? { word: 'claim' })
  }

  #late(ms: number): void {
    if (ms > 0) for (const sleeper of this.#sleepers.values()) sleeper.onLate?.(ms)
  }

  /** The list that was woken, and with what; null when it is time for the heartbeat. */
  async #wait(blocking: Redis): Promise<[string, string] | null> {
    // Redis takes 0 for ever.
    const ms = Math.max(1, Math.ceil(this.#beatAt - performance.now()))
    this.#waitsOn = [...this.#sleepers.keys()]
    try {
      const sentAt = performance.now()
      const found = (await blocking.block('BLPOP', [...this.#waitsOn, ms / 1000], ms)) as [string, string] | null
      this.#late(performance.now() - sentAt - ms)
      return found
    } finally {
      this.#waitsOn = []
    }
  }
}
