import { setTimeout as sleep } from 'node:timers/promises'
import { toCliError } from './cli-error.ts'

/** A server that restarts is back within this; longer, and it is gone. */
const TIMES = 30
const EVERY_MS = 1_000

/** Comes again to a server that is lost, for as long as it may come back. */
export class Reconnection {
  #failures = 0

  /** Whatever is lost from now on is lost anew. */
  answered(): void {
    this.#failures = 0
  }

  /**
   * Throws what coming again does not mend, and the last of too many failures.
   * @param onFirst - Says that the connection is lost; once, until there was an answer.
   */
  failed(error: unknown, onFirst: () => void = () => {}): void {
    this.#failures += 1
    if (toCliError(error).exit !== 'unreachable' || this.#failures > TIMES) throw error
    if (this.#failures === 1) onFirst()
  }

  /** Until it is time to come again; rejects when the signal is aborted. */
  async pause(signal: AbortSignal): Promise<void> {
    await sleep(EVERY_MS, undefined, { signal })
  }
}
