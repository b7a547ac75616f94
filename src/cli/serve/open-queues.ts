import { httpRequest } from '../../bulk/http-request/http-request.ts'
import { type Queue, Sluice } from '../../index.ts'
import type { ServedQueue, SluiceConfig } from '../define-config.ts'

const DEFAULT_CONCURRENCY = 20

/** Connects as the config says; nothing is served yet. */
export function openSluice(config: SluiceConfig): Sluice {
  const { host: _host, port: _port, keys: _keys, queues: _queues, ...options } = config
  return new Sluice({ redis: 'embedded', ...options })
}

export function openQueues(sluice: Sluice, served: Readonly<Record<string, ServedQueue>>): Record<string, Queue> {
  return Object.fromEntries(
    Object.entries(served).map(([name, queue]) => {
      const { concurrency: _concurrency, http: _http, processors: _processors, ...options } = queue
      return [name, sluice.queue(name, options)]
    }),
  )
}

/** Lets a queue run its jobs in this process; answers what ends its connections. */
export function startWorker(queue: Queue, served: ServedQueue): () => void {
  const { concurrency = DEFAULT_CONCURRENCY, http = { allowHosts: [] }, processors = {} } = served
  // Also without any host: a job is then refused with the reason, and does not wait for a worker that knows it.
  const handler = httpRequest({ maxConnections: concurrency, ...http })
  queue.process('http.request', handler, { concurrency })
  for (const [type, own] of Object.entries(processors)) queue.process(type, own, { concurrency })
  return () => handler.close()
}
