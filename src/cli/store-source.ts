import type { SluiceConfig } from '../config/define-config.ts'
import type { Explanation, Queue, QueueEvent, QueueOverview, Sluice } from '../index.ts'
import { observeQueue } from '../sluice.ts'
import type { EventsAsked, QueueSource } from './queue-source.ts'
import { openSluice, queueOptionsOf, untilReady } from './serve/open-queues.ts'
import { readStoreConfig, type StoreOptions } from './store-config.ts'
import { withoutCredentials } from './without-credentials.ts'

/** Queues in a store, without a server. They are looked at, not declared: see `observeQueue`. */
export class StoreSource implements QueueSource {
  readonly name: string
  readonly #sluice: Sluice
  readonly #config: SluiceConfig
  readonly #known: readonly string[]
  readonly #queues = new Map<string, Queue>()

  private constructor(sluice: Sluice, config: SluiceConfig, known: readonly string[]) {
    this.name = typeof config.redis === 'string' ? withoutCredentials(config.redis) : 'the store'
    this.#sluice = sluice
    this.#config = config
    this.#known = known
  }

  static async open(options: StoreOptions, named: readonly string[]): Promise<StoreSource> {
    const config = await readStoreConfig(options)
    // Also where the config has a log of its own: it would write into what is shown.
    const sluice = openSluice({ ...config, log: () => {} })
    try {
      await untilReady(sluice, config)
    } catch (error) {
      await sluice.close()
      throw error
    }
    const known = [...new Set([...named, ...Object.keys(config.queues ?? {})])]
    return new StoreSource(sluice, config, known.length === 0 ? ['default'] : known)
  }

  queues(): Promise<readonly string[]> {
    return Promise.resolve(this.#known)
  }

  overview(queue: string, options: { tenants: number }): Promise<QueueOverview> {
    return this.queue(queue).overview(options)
  }

  explain(queue: string, tenant: string): Promise<Explanation> {
    return this.queue(queue).explain({ tenant })
  }

  async setTenantPaused(queue: string, tenant: string, isPaused: boolean): Promise<void> {
    const control = this.queue(queue).tenant(tenant)
    await (isPaused ? control.pause() : control.resume())
  }

  events(queue: string, { from, follow, signal }: EventsAsked): AsyncGenerator<QueueEvent> {
    return this.queue(queue).events({ follow, signal, ...(from === undefined ? {} : { from }) })
  }

  queue(name: string): Queue {
    const known = this.#queues.get(name)
    if (known) return known
    const served = this.#config.queues?.[name]
    const queue = observeQueue(this.#sluice, name, served && queueOptionsOf(this.#sluice, name, served))
    this.#queues.set(name, queue)
    return queue
  }

  async close(): Promise<void> {
    await this.#sluice.close()
  }
}
