import type { Command } from 'commander'
import { loadConfig } from '../config.ts'
import type { ServedQueue, SluiceConfig } from '../define-config.ts'
import { commaList, rateIn, wholeNumber } from '../option-values.ts'
import { privateRanges } from '../run/private-hosts.ts'

/** What `serve` and `worker` have in common: where the store is, and which queues there are. */
export interface ProcessOptions {
  readonly config?: string
  readonly redis?: string
  readonly data?: string
  readonly prefix?: string
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
): Promise<SluiceConfig & { queues: Record<string, ServedQueue> }> {
  const { config } = await loadConfig(process.cwd(), options.config)
  const { redis = config.redis ?? 'embedded', data = config.dataDir, prefix = config.prefix } = options
  return {
    ...config,
    redis,
    ...(data === undefined ? {} : { dataDir: data }),
    ...(prefix === undefined ? {} : { prefix }),
    queues: queuesOf(config, options),
  }
}

function queuesOf(config: SluiceConfig, options: ProcessOptions): Record<string, ServedQueue> {
  const queues: Record<string, ServedQueue> = { ...config.queues }
  for (const text of options.queue ?? []) {
    const [name = '', limit] = text.split('=')
    queues[name] = {
      ...queues[name],
      ...(limit === undefined ? {} : { limits: { queue: rateIn(`--queue ${text}`, limit) } }),
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
