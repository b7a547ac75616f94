import type { Clock } from '../../clock.ts'
import { ClosedError } from '../../errors.ts'
import type { Requests } from '../../store/requests.ts'
import { watchAction } from '../../store/scripts/watch-action.ts'
import type { Sleeper, Waker } from '../waker.ts'

// Registered for this long, and again in time: by the clock, which a test may move far between two of the waker's heartbeats.
const WATCH_FOR_MS = 60_000
const WATCH_AGAIN_MS = 20_000
const MESSAGE = 'action:'

/** Hears of changes of one action, however many happened meanwhile. */
export interface Changes {
  /**
   * Resolves with the next change, or when nothing was heard for a while: somebody may have been cut off. Rejects when the
   * queue is closed.
   * @param withinMs - Resolves after this at the latest.
   */
  next(withinMs?: number): Promise<void>
  close(): void
}

/**
 * Tells readers in this process when an action changes. The scripts that change it leave a message in a list of this
 * process, at most ten a second, and the waker's one blocking read hears of it. Nothing is asked while nothing happens.
 */
export class ActionWatcher implements Sleeper {
  readonly #queue: string
  readonly #requests: Requests
  readonly #waker: Waker
  readonly #clock: Clock
  #cancelTimer: (() => void) | undefined
  #isClosed = false
  /** By `<tenant>:<name>`. */
  readonly #listeners = new Map<string, Set<() => void>>()

  constructor(parts: { queue: string; requests: Requests; waker: Waker; clock: Clock }) {
    this.#queue = parts.queue
    this.#requests = parts.requests
    this.#waker = parts.waker
    this.#clock = parts.clock
  }

  get wakeKey(): string {
    return this.#requests.keys.wake
  }

  /** Resolves when changes from now on will be heard. */
  async follow(tenant: string, name: string): Promise<Changes> {
    const key = `${tenant}:${name}`
    let hasChanged = false
    let wake: (() => void) | undefined
    const listener = () => {
      hasChanged = true
      wake?.()
    }
    this.#add(key, listener)
    try {
      await this.#watch(key, WATCH_FOR_MS)
    } catch (error) {
      this.#remove(key, listener)
      throw error
    }
    return {
      next: (withinMs) =>
        new Promise((resolve, reject) => {
          const timer = withinMs === undefined ? undefined : setTimeout(() => wake?.(), withinMs)
          wake = () => {
            clearTimeout(timer)
            hasChanged = false
            wake = undefined
            if (this.#isClosed) reject(new ClosedError(`The queue "${this.#queue}"`))
            else resolve()
          }
          if (hasChanged || this.#isClosed) wake()
        }),
      close: () => this.#remove(key, listener),
    }
  }

  onWake(what: string | undefined): void {
    if (what?.startsWith(MESSAGE)) {
      this.#tell(what.slice(MESSAGE.length))
      return
    }
    // A heartbeat, or the connection was lost: whoever follows looks for itself, and is registered again.
    this.#watchAll()
    for (const key of this.#listeners.keys()) this.#tell(key)
  }

  /** Nothing more is heard of: whoever waits is told so. */
  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    for (const key of this.#listeners.keys()) this.#tell(key)
  }

  #tell(key: string): void {
    for (const listener of this.#listeners.get(key) ?? []) listener()
  }

  #add(key: string, listener: () => void): void {
    if (this.#listeners.size === 0) {
      this.#waker.add(this)
      this.#cancelTimer = this.#watchLater()
    }
    const listeners = this.#listeners.get(key) ?? new Set()
    this.#listeners.set(key, listeners.add(listener))
  }

  #remove(key: string, listener: () => void): void {
    const listeners = this.#listeners.get(key)
    listeners?.delete(listener)
    if (listeners?.size !== 0) return
    this.#listeners.delete(key)
    // Best effort: a message nobody waits for expires by itself.
    this.#watch(key, 0).catch(() => {})
    if (this.#listeners.size > 0) return
    this.#cancelTimer?.()
    this.#waker.remove(this)
  }

  #watchLater(): () => void {
    return this.#clock.setTimer(() => {
      this.#cancelTimer = this.#watchLater()
      this.#watchAll()
    }, WATCH_AGAIN_MS)
  }

  #watchAll(): void {
    // Whoever could not be registered is so the next time.
    for (const key of this.#listeners.keys()) this.#watch(key, WATCH_FOR_MS).catch(() => {})
  }

  #watch(key: string, forMs: number): Promise<boolean> {
    const [tenant = '', name = ''] = key.split(':')
    return watchAction(this.#requests, { tenant, name, forMs })
  }
}
