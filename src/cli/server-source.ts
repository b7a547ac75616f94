import type { Explanation, QueueEvent, QueueOverview } from '../index.ts'
import { ApiClient } from './api-client.ts'
import type { EventsAsked, QueueSource } from './queue-source.ts'
import { queuePath, type ServerOptions } from './server-options.ts'

/** Queues as a running `sluice serve` shows them. */
export class ServerSource implements QueueSource {
  readonly name: string
  readonly #api: ApiClient

  constructor({ url, key }: ServerOptions) {
    this.name = url
    this.#api = new ApiClient({ url, key })
  }

  async queues(): Promise<readonly string[]> {
    const { queues } = await this.#api.get<{ queues: { name: string }[] }>('/v1/queues')
    return queues.map(({ name }) => name)
  }

  overview(queue: string, { tenants }: { tenants: number }): Promise<QueueOverview> {
    return this.#api.get(queuePath(queue, 'overview'), { tenants })
  }

  explain(queue: string, tenant: string): Promise<Explanation> {
    return this.#api.get(queuePath(queue, 'tenants', tenant, 'explain'))
  }

  async setTenantPaused(queue: string, tenant: string, isPaused: boolean): Promise<void> {
    await this.#api.patch(queuePath(queue, 'tenants', tenant), { paused: isPaused })
  }

  async *events(queue: string, { from, follow, signal, onOpen }: EventsAsked): AsyncGenerator<QueueEvent> {
    const query = new URLSearchParams({ follow: String(follow), ...(from === undefined ? {} : { from }) })
    for await (const { data } of this.#api.events(`${queuePath(queue, 'events')}?${query}`, { signal, onOpen })) {
      yield data as QueueEvent
    }
  }

  async close(): Promise<void> {
    await this.#api.close()
  }
}
