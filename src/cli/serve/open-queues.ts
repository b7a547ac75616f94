import { httpRequest } from '../../bulk/http-request/http-request.ts'
import { isSluiceError, type Queue, type QueueOptions, Sluice } from '../../index.ts'
import { CliError } from '../cli-error.ts'
import type { ServedQueue, SluiceConfig } from '../define-config.ts'

const DEFAULT_CONCURRENCY = 20

/** Connects as the config says; nothing is served yet. */
export function openSluice(config: SluiceConfig): Sluice {
  const { host: _host, port: _port, keys: _keys, queues: _queues, ...options } = config
  return new Sluice({ redis: 'embedded', ...options })
}

/** Waits until the store answers. A server that does not is one that somebody else has to start. */
export async function untilReady(sluice: Sluice, { redis }: SluiceConfig): Promise<void> {
  try {
    await sluice.ready()
  } catch (error) {
    const isElsewhere = redis !== undefined && redis !== 'embedded'
    if (!isElsewhere || !isSluiceError(error) || error.code !== 'SLUICE_STORE_UNAVAILABLE') throw error
    const advice = 'start it, or name another with --redis or "redis" of the config file'
    throw new CliError('unreachable', `${error.message} To go on, ${advice}.`, {
      cause: error,
      details: { code: error.code },
    })
  }
}

export function openQueues(sluice: Sluice, served: Readonly<Record<string, ServedQueue>>): Record<string, Queue> {
  return Object.fromEntries(
    Object.entries(served).map(([name, queue]) => [name, sluice.queue(name, queueOptionsOf(queue))]),
  )
}

/** What of it the library knows. */
export function queueOptionsOf(served: ServedQueue): QueueOptions {
  const { concurrency: _concurrency, http: _http, processors: _processors, ...options } = served
  return options
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
