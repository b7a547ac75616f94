import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueEvent } from '../engine/events.ts'
import type { Queue } from '../engine/queue.ts'
import { isSluiceError } from '../errors.ts'
import { logger } from './nest-log.ts'
import type { PlannedListener } from './processor-plan.ts'

const RETRY_MS = 1_000

/** Tells the listeners of one queue what happens, one event after the other. */
export class EventFollower {
  readonly #queue: Queue
  readonly #listeners: readonly PlannedListener[]
  readonly #stop = new AbortController()
  #ended: Promise<void> | undefined

  constructor(queue: Queue, listeners: readonly PlannedListener[]) {
    this.#queue = queue
    this.#listeners = listeners
  }

  /** Resolves when nothing that happens from now on is missed. */
  async start(): Promise<void> {
    this.#ended = this.#follow()
    // The follower asks for the last event there is; what is asked after it, on the same connection, is answered after it.
    await this.#queue.counts().catch(() => {})
  }

  /** Resolves when the event that is being told has been dealt with. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop
    let from: string | undefined
    while (!signal.aborted) {
      try {
        for await (const event of this.#queue.events(from === undefined ? { signal } : { from, signal })) {
          await this.#tell(event)
          from = event.id
        }
      } catch (error) {
        if (isSluiceError(error) && error.code === 'SLUICE_CLOSED') return
        logger.error(`The events of queue "${this.#queue.name}" could not be read; they are again in a second.`, error)
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
      }
    }
  }

  /** One that throws has had its event: the next one comes all the same. */
  async #tell(event: QueueEvent): Promise<void> {
    for (const { types, where, call } of this.#listeners) {
      if (!types.includes(event.type)) continue
      try {
        await call(event)
      } catch (error) {
        logger.error(
          `${where} threw when it was told of ${event.type} (event ${event.id} of "${this.#queue.name}").`,
          error,
        )
      }
    }
  }
}
