import { InvalidOptionsError, UnknownQueueError } from '../errors.ts'
import { type Home, homeOf, isRegistered, isStillHome, moveIn } from '../store/home.ts'
import type { Redis } from '../store/redis.ts'
import { repeatWhileUnavailable } from '../store/repeat.ts'
import { READ_FOR_MS } from '../store/requests.ts'
import { assertFormat, registerQueue } from '../store/scripts/register-queue.ts'
import type { Declaration } from '../store/settings.ts'
import type { QueuePlace } from './queue-place.ts'

interface RegistrationParts {
  readonly queue: string
  readonly prefix: string
  readonly client: string
  readonly redis: Redis
  readonly place: QueuePlace
  readonly declaration: Declaration
  /** Looks at what others have declared, and declares nothing. */
  readonly isObserver: boolean
  /** What else of the queue is to be declared: always, and when the store had forgotten it. */
  readonly declare: (hasForgotten: boolean) => Promise<void>
}

/** How a queue comes into the store: once per process, and again when the store turns out to have lost it. */
export class Registration {
  readonly #parts: RegistrationParts
  #registered: Promise<void> | undefined
  /** One has ended well, whoever asked for it. */
  #isKnown = false
  /** As the store said; '' before the first registration has ended, however many are under way. */
  #knownSince = ''

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

  /** The same for whoever only looks: without a connection it rejects when that has been waited for. */
  async readable(): Promise<void> {
    const { redis, place } = this.#parts
    // By a call that is answered: a connection that was just lost looks as if it were there. Not before each read: one of a
    // queue that is gone is told so.
    if (!this.#isKnown) await repeatWhileUnavailable(() => isRegistered(redis, place.keys), READ_FOR_MS)
    await this.ready()
  }

  /** When the store came to know the queue, as this process was told; '': it was not yet. */
  get knownSince(): string {
    return this.#knownSince
  }

  /** @param isAgain - The store does not know the queue. If it did once, it has forgotten its grants as well. */
  async register(isAgain: boolean): Promise<void> {
    if (this.#parts.isObserver) await this.#assertKnown()
    else await this.#declare(isAgain)
    this.#isKnown = true
    this.#registered ??= Promise.resolve()
  }

  async #declare(isAgain: boolean): Promise<void> {
    const { redis, place, declaration, declare } = this.#parts
    const knewSince = isAgain ? this.#knownSince : ''
    let knownSince: string
    do {
      await this.#moveIn()
      knownSince = await registerQueue(redis, place.keys, declaration, { knewSince })
    } while (!(await isStillHome(redis, this.#resident())))
    this.#knownSince = knownSince
    await declare(knewSince !== '')
  }

  /** Jobs of a queue are in one group: another would be another queue, and what it has would wait for ever. */
  async #moveIn(): Promise<void> {
    const { redis, place } = this.#parts
    for (;;) {
      const elsewhere = await moveIn(redis, this.#resident())
      if (!elsewhere) return
      if (this.#saysWhere || this.#knownSince !== '') throw this.#livesElsewhere(elsewhere)
      place.moveTo(elsewhere.group)
    }
  }

  /** The limits of a queue say what group it is in; a process that gives none goes where others have put it. */
  get #saysWhere(): boolean {
    return this.#parts.declaration.limits !== undefined
  }

  #livesElsewhere({ group, jobs }: Home): InvalidOptionsError {
    const { place, queue } = this.#parts
    const shared = group === queue ? 'without shared limits' : `with limits of group "${group}"`
    const isLeftBehind = this.#knownSince !== ''
    if (!this.#saysWhere) {
      const problem = `are not given, and another process has moved the queue to group "${group}" since. Restart this process: it goes there then`
      return new InvalidOptionsError(`queue "${queue}"`, [{ path: 'limits', problem }])
    }
    const why = isLeftBehind
      ? `put the queue into group "${place.group}", but another process has moved it to group "${group}" since. `
      : `would put the queue into group "${place.group}", but it has ${jobs} jobs in group "${group}". `
    const what = isLeftBehind
      ? `Restart this process with the limits that the other one has (${shared}), or without any`
      : `Open it ${shared} until these have ended`
    const problem = `${why}${what}, or give the limits that group: sluice.limit(name, definition, { group: '${group}' })`
    return new InvalidOptionsError(`queue "${queue}"`, [{ path: 'limits', problem }])
  }

  #resident() {
    const { prefix, place, queue, client } = this.#parts
    const mayMove = this.#saysWhere && this.#knownSince === ''
    return { prefix, group: place.group, name: queue, client, mayMove }
  }

  async #assertKnown(): Promise<void> {
    const { redis, place, prefix, queue } = this.#parts
    await redis.ready()
    place.moveTo((await homeOf(redis, prefix, queue)) ?? place.group)
    const { keys } = place
    if (!(await isRegistered(redis, keys))) throw new UnknownQueueError({ queue })
    await assertFormat(redis, keys)
  }
}
