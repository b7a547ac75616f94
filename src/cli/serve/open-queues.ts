import { httpRequest } from '../../bulk/http-request/http-request.ts'
import type { ConfiguredLimit, ServedQueue, SluiceConfig } from '../../config/define-config.ts'
import {
  isSluiceError,
  type LimitDefinition,
  type Queue,
  type QueueOptions,
  type SharedLimit,
  Sluice,
  type SluiceOptions,
} from '../../index.ts'
import { CliError } from '../cli-error.ts'

// Twice what `queue.process` has: a queue that is served mostly makes HTTP calls, which wait most of their time.
const DEFAULT_CONCURRENCY = 20

/** What of a config the library knows. */
export function storeOptionsOf(config: SluiceConfig): SluiceOptions {
  const { host: _host, port: _port, keys: _keys, queues: _queues, limits: _limits, ...options } = config
  return { redis: 'embedded', ...options }
}

/** Connects as the config says; nothing is served yet. */
export function openSluice(config: SluiceConfig): Sluice {
  const sluice = new Sluice(storeOptionsOf(config))
  try {
    for (const [name, given] of Object.entries(config.limits ?? {})) {
      const { limit, ...chosen } = hasGroup(given) ? given : { limit: given }
      sluice.limit(name, limit, chosen)
    }
  } catch (error) {
    void sluice.close()
    throw error
  }
  return sluice
}

/** Every definition that is no text has a kind. */
export function hasGroup(given: LimitDefinition | ConfiguredLimit): given is ConfiguredLimit {
  return typeof given === 'object' && given !== null && !('kind' in given)
}

export function groupOf(name: string, given: LimitDefinition | ConfiguredLimit): string {
  return (hasGroup(given) ? given.group : undefined) ?? name
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
    Object.entries(served).map(([name, queue]) => [name, sluice.queue(name, queueOptionsOf(sluice, name, queue))]),
  )
}

/** What of a queue the library knows, without what it shares with others. */
export function ownOptionsOf(served: ServedQueue): QueueOptions {
  const { concurrency: _concurrency, http: _http, processors: _processors, shares: _shares, ...rest } = served
  const { schedules: _schedules, ...options } = rest
  return options
}

/** The same with the limits it shares. */
export function queueOptionsOf(sluice: Sluice, name: string, served: ServedQueue): QueueOptions {
  const options = ownOptionsOf(served)
  if (served.shares === undefined || served.shares.length === 0) return options
  const shared = served.shares.map((limit) => [limit, sharedLimit(sluice, name, limit)])
  return { ...options, limits: { ...options.limits, ...Object.fromEntries(shared) } }
}

function sharedLimit(sluice: Sluice, queue: string, name: string): SharedLimit {
  try {
    return sluice.limit(name)
  } catch (error) {
    const problem = `queues.${queue}.shares: there is no limit ${JSON.stringify(name)} in "limits" of the config file`
    throw new CliError('usage', problem, { cause: error })
  }
}

/** Makes the schedules that the config file has, or changes them to what it says; the same again changes nothing. */
export async function declareSchedules(
  queues: Readonly<Record<string, Queue>>,
  served: Readonly<Record<string, ServedQueue>>,
): Promise<void> {
  for (const [name, queue] of Object.entries(queues)) {
    for (const [schedule, input] of Object.entries(served[name]?.schedules ?? {})) {
      await queue.schedules.set(schedule, input)
    }
  }
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
