import { setTimeout as sleep } from 'node:timers/promises'
import { followEvents, type QueueEvent } from '../engine/events.ts'
import { LastingError } from '../engine/lasting-error.ts'
import { insideOf, type Queue } from '../engine/queue.ts'
import { isSluiceError } from '../errors.ts'
import { eventIdBefore, lastEventId } from '../store/event-stream.ts'
import { logger, nestLog } from './nest-log.ts'
import type { PlannedListener } from './processor-plan.ts'

const RETRY_MS = 1_000

/** Tells the listeners of one queue what happens, one event after the other. */
export class EventFollower {
  readonly #queue: Queue
  readonly #listeners: readonly PlannedListener[]
  readonly #stop = new AbortController()
  #startedAt = 0
  /** The last event that was dealt with, or that there was before the start; undefined while Redis could not say. */
  #from: string | undefined
  readonly #lastingError: LastingError
  /** What is being told, and to whom. */
  #telling = ''
  /** Undefined between two events. */
  #told: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(queue: Queue, listeners: readonly PlannedListener[]) {
    this.#queue = queue
    this.#listeners = listeners
    this.#lastingError = new LastingError(nestLog, {
      event: 'events.unread',
      message: `The events of queue "${queue.name}" cannot be read; it is tried again every second`,
    })
  }

  /**
   * Resolves when nothing that happens from now on is missed, also while Redis is away.
   * @param isAway - It is, so far as anybody knows: it is not waited for.
   */
  async start({ isAway }: { isAway: boolean }): Promise<void> {
    this.#startedAt = performance.now()
    if (!isAway) this.#from = await this.#lastEventId().catch(() => undefined)
    void this.#follow()
  }

  async #lastEventId(): Promise<string> {
    const { redis, requests, registration } = insideOf(this.#queue)
    await registration.ready()
    return lastEventId(redis, requests.keys)
  }

  /** Resolves when the event that is being told has been dealt with, or the grace of the queue is over. */
  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<void> {
    this.#stop.abort()
    // Nobody is kept waiting by a Redis that is away: between two events there is nothing to end.
    if (!this.#told) return
    const { shutdownGraceMs } = insideOf(this.#queue).settings
    const grace = new AbortController()
    const hangs = await Promise.race([
      this.#told.then(() => false),
      sleep(shutdownGraceMs, true, { signal: grace.signal }).catch(() => false),
    ])
    grace.abort()
    if (!hangs) return
    logger.warn(`${this.#telling} has taken longer than ${shutdownGraceMs} ms (shutdownGraceMs): it is left behind.`)
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        this.#from ??= await this.#startingPoint()
        const events = followEvents(insideOf(this.#queue), { from: this.#from, signal }, () =>
          this.#lastingError.mended(),
        )
        for await (const event of events) {
          if (signal.aborted) return
          this.#told = this.#tell(event)
          await this.#told
          this.#told = undefined
          this.#from = event.id
        }
      } catch (error) {
        if (isSluiceError(error) && error.code === 'SLUICE_CLOSED') return
        this.#lastingError.failed(error)
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
      }
    }
  }

  /** Redis was away at the start. What has happened since it is back is not to be missed. */
  #startingPoint(): Promise<string> {
    const { redis, requests } = insideOf(this.#queue)
    return eventIdBefore(redis, requests.keys, () => performance.now() - this.#startedAt)
  }

  /** One that throws has had its event: the next one comes all the same. */
  async #tell(event: QueueEvent): Promise<void> {
    for (const { types, where, call } of this.#listeners) {
      if (!types.includes(event.type)) continue
      const what = `${event.type} (event ${event.id} of "${this.#queue.name}")`
      this.#telling = `${where}, told of ${what},`
      try {
        await call(event)
      } catch (error) {
        const stack = error instanceof Error ? error.stack : String(error)
        logger.error(`${where} threw when it was told of ${what}.`, stack)
      }
    }
  }
}
