import { isStoreAway } from './is-store-away.ts'
import type { Log, LogEvent } from './log.ts'

/**
 * An error of something that is tried again and again: said once, and anew after it has gone well in between. That the store
 * is away is no news: it comes back by itself. A right that is missing does not.
 */
export class LastingError {
  readonly #log: Log
  readonly #event: LogEvent
  readonly #message: string
  #isSaid = false

  constructor(log: Log, { event, message }: { event: LogEvent; message: string }) {
    this.#log = log
    this.#event = event
    this.#message = message
  }

  failed(error: unknown): void {
    if (this.#isSaid || isStoreAway(error)) return
    this.#isSaid = true
    const why = error instanceof Error ? error.message : String(error)
    this.#log({ level: 'error', event: this.#event, message: `${this.#message}: ${why}`, error })
  }

  mended(): void {
    this.#isSaid = false
  }
}
