import { InvalidOptionsError, UnknownQueueError } from '../errors.ts'
import { isRegistered, isStillHome, moveIn } from '../store/home.ts'
import type { QueueKeys } from '../store/keys.ts'
import type { Redis } from '../store/redis.ts'
import { assertFormat, registerQueue } from '../store/scripts/register-queue.ts'
import { declaredSettings, type QueueSettings } from './queue-options.ts'

interface RegistrationParts {
  readonly queue: string
  readonly prefix: string
  readonly group: string
  readonly client: string
  readonly redis: Redis
  readonly keys: QueueKeys
  readonly settings: QueueSettings
  /** Looks at what others have declared, and declares nothing. */
  readonly isObserver: boolean
  /** What else of the queue is to be declared: always, and when the store had forgotten it. */
  readonly declare: (hasForgotten: boolean) => Promise<void>
}

/** How a queue comes into the store: once per process, and again when the store turns out to have lost it. */
export class Registration {
  readonly #parts: RegistrationParts
  #registered: Promise<void> | undefined
  /** The store has known the queue: not before the first registration has ended, however many are under way. */
  #wasKnown = false

  constructor(parts: RegistrationParts) {
    this.#parts = parts
  }

  ready(): Promise<void> {
    this.#registered ??= this.register(false).catch((error: unknown) => {
      this.#registered = undefined
      throw error
    })
    return this.#registered
  }

  /** @param isAgain - The store does not know the queue. If it did once, it has forgotten its grants as well. */
  async register(isAgain: boolean): Promise<void> {
    const { redis, keys, settings, isObserver, declare } = this.#parts
    if (isObserver) return this.#assertKnown()
    const hasForgotten = isAgain && this.#wasKnown
    do {
      await this.#moveIn()
      await registerQueue(redis, keys, declaredSettings(settings), { isAgain: hasForgotten })
    } while (!(await isStillHome(redis, this.#resident())))
    this.#wasKnown = true
    await declare(hasForgotten)
  }

  /** Jobs of a queue are in one group: another would be another queue, and what it has would wait for ever. */
  async #moveIn(): Promise<void> {
    const { redis, group, queue } = this.#parts
    const elsewhere = await moveIn(redis, this.#resident())
    if (!elsewhere) return
    const shared = elsewhere.group === queue ? 'without shared limits' : `with limits of group "${elsewhere.group}"`
    const why = this.#wasKnown
      ? `put the queue into group "${group}", but another process has moved it to group "${elsewhere.group}" since. `
      : `would put the queue into group "${group}", but it has ${elsewhere.jobs} jobs in group "${elsewhere.group}". `
    const what = this.#wasKnown
      ? `Restart this process with the limits that the other one has (${shared})`
      : `Open it ${shared} until these have ended`
    const problem = `${why}${what}, or give the limits that group: sluice.limit(name, definition, { group: '${elsewhere.group}' })`
    throw new InvalidOptionsError(`queue "${queue}"`, [{ path: 'limits', problem }])
  }

  #resident() {
    const { prefix, group, queue, client } = this.#parts
    return { prefix, group, name: queue, client, mayMove: !this.#wasKnown }
  }

  async #assertKnown(): Promise<void> {
    const { redis, keys, queue } = this.#parts
    await redis.ready()
    if (!(await isRegistered(redis, keys))) throw new UnknownQueueError({ queue })
    await assertFormat(redis, keys)
  }
}
