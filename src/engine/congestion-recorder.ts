import { isSluiceError } from '../errors.ts'
import { LAST_WORDS_MS, settledWithin } from './last-words.ts'
import type { Log } from './log.ts'

/** Records how far a queue is behind, once at a time and beside the work: nobody waits for it who has jobs to run. */
export class CongestionRecorder {
  readonly #queue: string
  readonly #store: () => Promise<unknown>
  readonly #log: Log
  #running: Promise<unknown> | undefined

  constructor(parts: { queue: string; store: () => Promise<unknown>; log: Log }) {
    this.#queue = parts.queue
    this.#store = parts.store
    this.#log = parts.log
  }

  /** It is due, and this process came first. What goes wrong is a gap in the history. */
  record(): void {
    this.#running ??= this.#store()
      .catch((error: unknown) => this.#onGap(error))
      .finally(() => {
        this.#running = undefined
      })
  }

  /** Resolves when nothing is under way, or Redis does not answer. */
  async settled(): Promise<void> {
    await settledWithin(this.#running, LAST_WORDS_MS)
  }

  #onGap(error: unknown): void {
    if (isSluiceError(error) && error.code === 'SLUICE_CLOSED') return
    this.#log({
      level: 'warn',
      event: 'congestion.unrecorded',
      message: `The congestion of queue "${this.#queue}" could not be recorded; its history has a gap.`,
      error,
    })
  }
}
