import type { Command } from 'commander'
import type { ServedQueue, SluiceConfig } from '../../config/define-config.ts'
import { commaList, rateIn, wholeNumber } from '../option-values.ts'
import { privateRanges } from '../run/private-hosts.ts'
import { readStoreConfig, type StoreConfig, type StoreOptions } from '../store-config.ts'

/** What `serve` and `worker` have in common: where the store is, and which queues there are. */
export interface ProcessOptions extends StoreOptions {
  readonly queue?: readonly string[]
  readonly concurrency?: number
  readonly allowHost?: readonly string[]
  readonly allowPrivate?: true | readonly string[]
}

export function withProcessOptions(command: Command): Command {
  return command
    .option(
      '--config <file>',
      'the config file (default: sluice.config.ts, .mjs or .js of this folder, if there is one)',
    )
    .option(
      '--redis <url>',
      'redis://…, redis-sentinel://…, redis-cluster://…, the path of a socket, or embedded for a private server (default: embedded)',
    )
    .option('--data <folder>', 'the folder of the embedded server (default: .sluice)')
    .option('--prefix <prefix>', 'starts every key in Redis (default: sluice)')
    .option(
      '-q, --queue <name[=rate]>',
      'a queue, with its rate: mail=500/s; may be repeated (default: default)',
      commaList,
    )
    .option('--concurrency <jobs>', 'jobs of a queue at once', wholeNumber({ min: 1, max: 10_000 }))
    .option('--allow-host <hosts>', 'hosts that http.request may call: api.example.com,*.example.org', commaList)
    .option('--allow-private [ranges]', 'private addresses it may call: all, or these (10.0.0.0/8,…)', commaList)
}

/** Options of the command line on top of the config file. */
export async function processConfig(
  options: ProcessOptions,
): Promise<StoreConfig & { queues: Record<string, ServedQueue> }> {
  const config = await readStoreConfig(options)
  const { checkServedQueue } = await import('./check-queue.ts')
  // Before anything is opened, and before lists are made longer by the command line: text would be taken for a list of letters.
  for (const [name, queue] of Object.entries(config.queues ?? {})) checkServedQueue(name, queue)
  return { ...config, queues: queuesOf(config, options) }
}

function queuesOf(config: SluiceConfig, options: ProcessOptions): Record<string, ServedQueue> {
  const queues: Record<string, ServedQueue> = { ...config.queues }
  for (const text of options.queue ?? []) {
    const [name = '', limit] = text.split('=')
    const before = queues[name]
    queues[name] = {
      ...before,
      // The rate is one of its limits: those of its tenants and levels, and others of its own, stay as the file has them.
      ...(limit === undefined ? {} : { limits: { ...before?.limits, queue: rateIn(`--queue ${text}`, limit) } }),
    }
  }
  if (Object.keys(queues).length === 0) queues.default = {}
  for (const [name, queue] of Object.entries(queues))
    queues[name] = { ...queue, ...httpOf(queue, options), ...handsOf(options) }
  return queues
}

/** Hosts that are allowed on the command line are allowed for every queue, beside those of the config file. */
function httpOf(queue: ServedQueue, { allowHost, allowPrivate }: ProcessOptions): Pick<ServedQueue, 'http'> {
  const ranges = allowPrivate === true ? privateRanges : (allowPrivate ?? [])
  return {
    http: {
      ...queue.http,
      allowHosts: [...(queue.http?.allowHosts ?? []), ...(allowHost ?? [])],
      allowPrivate: [...(queue.http?.allowPrivate ?? []), ...ranges],
    },
  }
}

function handsOf({ concurrency }: ProcessOptions): Pick<ServedQueue, 'concurrency'> {
  return concurrency === undefined ? {} : { concurrency }
}
