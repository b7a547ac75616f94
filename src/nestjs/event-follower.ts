import { setTimeout as sleep } from 'node:timers/promises'
import type { QueueEvent } from '../engine/events.ts'
import { insideOf, type Queue } from '../engine/queue.ts'
import { isSluiceError } from '../errors.ts'
import { eventIdBefore, lastEventId } from '../store/event-stream.ts'
import { logger } from './nest-log.ts'
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
  /** What is being told, and to whom. */
  #telling = ''
  #ended: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  constructor(queue: Queue, listeners: readonly PlannedListener[]) {
    this.#queue = queue
    this.#listeners = listeners
  }

  /** Resolves when nothing that happens from now on is missed, also while Redis is away. */
  async start(): Promise<void> {
    const { redis, requests } = insideOf(this.#queue)
    this.#startedAt = performance.now()
    this.#from = await lastEventId(redis, requests.keys).catch(() => undefined)
    this.#ended = this.#follow()
  }

  /** Resolves when the event that is being told has been dealt with, or the grace of the queue is over. */
  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<void> {
    this.#stop.abort()
    const { shutdownGraceMs } = insideOf(this.#queue).settings
    const grace = new AbortController()
    const hangs = await Promise.race([
      this.#ended?.then(() => false),
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
        for await (const event of this.#queue.events({ from: this.#from, signal })) {
          await this.#tell(event)
          this.#from = event.id
        }
      } catch (error) {
        if (isSluiceError(error) && error.code === 'SLUICE_CLOSED') return
        logger.error(`The events of queue "${this.#queue.name}" could not be read; trying again in a moment.`, error)
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
        logger.error(`${where} threw when it was told of ${what}.`, error)
      }
    }
  }
}
