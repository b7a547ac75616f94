import type { ConnectionWatch } from '../store/redis-port.ts'
import type { Log } from './log.ts'

// A failover, or a restart, is over by then: nobody has to know of it.
const AWAY_MS = 3_000

/**
 * Says that the store is away, once, when it has been so for a few seconds; and once that it is back. Of a Cluster a part that
 * is away counts. One for a process: what its queues do meanwhile is no news.
 */
export class StoreWatch implements ConnectionWatch {
  readonly #log: Log
  readonly #lost = new Set<object>()
  #awaySince = 0
  #reason = ''
  #isSaid = false
  #timer: NodeJS.Timeout | undefined

  constructor(log: Log) {
    this.#log = log
  }

  lost(connection: object, reason: string): void {
    this.#reason = reason
    if (this.#lost.size === 0) {
      this.#awaySince = performance.now()
      this.#timer = setTimeout(() => this.#sayAway(), AWAY_MS).unref()
    }
    this.#lost.add(connection)
  }

  made(connection: object): void {
    this.#forget(connection)
    if (this.#lost.size > 0 || !this.#isSaid) return
    this.#isSaid = false
    const seconds = Math.round((performance.now() - this.#awaySince) / 1_000)
    this.#log({ level: 'info', event: 'store.back', message: `Redis is back after ${seconds} s.` })
  }

  closed(connection: object): void {
    this.#forget(connection)
  }

  #forget(connection: object): void {
    this.#lost.delete(connection)
    if (this.#lost.size === 0) clearTimeout(this.#timer)
  }

  #sayAway(): void {
    this.#isSaid = true
    this.#log({
      level: 'warn',
      event: 'store.away',
      message: `Redis has been away for ${AWAY_MS / 1_000} s (${this.#reason}): jobs wait; those that run go on, and what has ended is told when it is back.`,
    })
  }
}
