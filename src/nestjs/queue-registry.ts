import type { DiscoveryService } from '@nestjs/core'
import type { Queue } from '../engine/queue.ts'
import { InvalidOptionsError } from '../errors.ts'
import type { Sluice } from '../sluice.ts'
import { closeAll } from './close-all.ts'
import { mergeOptions } from './merge-options.ts'
import type { RegisteredQueueOptions, SluiceModuleOptions } from './module-options.ts'
import { isRegistration, type QueueRegistration } from './queue-registration.ts'

interface Configuration {
  readonly sluice: Sluice | undefined
  readonly options: SluiceModuleOptions | undefined
}

/**
 * The queues of one application. Several modules may register the same queue; one of them gives its options, and each of them
 * gets the same queue, whichever is made first.
 */
export class QueueRegistry {
  readonly #discovery: DiscoveryService
  readonly #queues = new Map<string, Promise<Queue>>()
  readonly #made = new Map<string, Queue>()
  readonly #awaited = new Map<QueueRegistration, PromiseWithResolve>()

  constructor(discovery: DiscoveryService) {
    this.#discovery = discovery
  }

  /** All that modules have registered, of whatever name. */
  registrations(): QueueRegistration[] {
    const values = this.#discovery.getProviders().map(({ instance }) => instance as unknown)
    return [...new Set(values.filter(isRegistration))]
  }

  /** Queues that were really made: one whose provider a test has replaced is not. */
  get made(): ReadonlyMap<string, Queue> {
    return this.#made
  }

  /** A factory has made the options of this registration. */
  settle(registration: QueueRegistration, options: RegisteredQueueOptions): void {
    this.#optionsFor(registration).resolve(options)
  }

  queue(registration: QueueRegistration, configuration: Configuration): Promise<Queue> {
    const { name } = registration
    const known = this.#queues.get(name)
    if (known) return known
    const queue = this.orClose(() => this.#make(registration, configuration))
    this.#queues.set(name, queue)
    return queue
  }

  /** Does something without which the application does not start: if it fails, nothing keeps its process alive. */
  async orClose<Result>(make: () => Result | Promise<Result>): Promise<Result> {
    try {
      return await make()
    } catch (error) {
      await closeAll(this.#discovery)
      throw error
    }
  }

  async #make({ name, configKey }: QueueRegistration, { sluice, options }: Configuration): Promise<Queue> {
    if (!sluice) throw problemOf(name, missingRoot(configKey))
    if (typeof sluice.queue !== 'function') throw problemOf(name, notReplaced(name))
    const same = this.registrations().filter((each) => each.name === name)
    const problem = problemOfRegistrations(same)
    if (problem) throw problemOf(name, problem)
    const [speaking] = same.filter(({ hasOptions }) => hasOptions)
    const own = speaking ? (speaking.options ?? (await this.#optionsFor(speaking).promise)) : {}
    const { middleware = [], ...merged } = mergeOptions(options?.defaults, own)
    const queue = sluice.queue(name, merged)
    for (const each of middleware) queue.use(each)
    this.#made.set(name, queue)
    return queue
  }

  #optionsFor(registration: QueueRegistration): PromiseWithResolve {
    const known = this.#awaited.get(registration)
    if (known) return known
    let resolve: PromiseWithResolve['resolve'] = () => {}
    const promise = new Promise<RegisteredQueueOptions>((resolvePromise) => {
      resolve = resolvePromise
    })
    const awaited = { promise, resolve }
    this.#awaited.set(registration, awaited)
    return awaited
  }
}

interface PromiseWithResolve {
  readonly promise: Promise<RegisteredQueueOptions>
  readonly resolve: (options: RegisteredQueueOptions) => void
}

function problemOf(name: string, problem: string): InvalidOptionsError {
  return new InvalidOptionsError('SluiceModule.registerQueue', [{ path: `queue "${name}"`, problem }])
}

/** A test has put something else in the place of the Sluice. */
function notReplaced(name: string): string {
  return `has a Sluice that is none: who replaces it replaces each queue too, .overrideProvider(getQueueToken(${JSON.stringify(name)}))`
}

function missingRoot(configKey: string): string {
  if (configKey === 'default') {
    return 'has no Sluice: import SluiceModule.forRoot({ redis: … }) once, in the root module of the application'
  }
  return `has no Sluice: import SluiceModule.forRoot(${JSON.stringify(configKey)}, { redis: … }) in the root module, or correct its configKey`
}

/** Registrations of one name: undefined when they can be one queue. */
function problemOfRegistrations(same: readonly QueueRegistration[]): string | undefined {
  const keys = new Set(same.map(({ configKey }) => configKey))
  if (keys.size > 1)
    return `is registered with different values of configKey: ${[...keys].join(', ')}. Names are one for all`
  if (same.filter(({ hasOptions }) => hasOptions).length < 2) return undefined
  return 'is given options in several places: give them in one, and elsewhere its name alone: registerQueue({ name })'
}
