import type { Command } from 'commander'
import type { Explanation, QueueEvent, QueueOverview } from '../index.ts'
import { type ServerOptions, withServer } from './server-options.ts'
import type { StoreOptions } from './store-config.ts'

export interface EventsAsked {
  /** Id of the last event that is known; undefined: from now on. */
  readonly from: string | undefined
  readonly follow: boolean
  readonly signal: AbortSignal
  /** Called when a server has answered: events may be long in coming. A store comes back by itself, and says nothing. */
  readonly onOpen: () => void
}

/** Where a command looks at queues: a server over HTTP, or the store itself. */
export interface QueueSource {
  /** For messages: an address, without what lets in. */
  readonly name: string
  /** Names of the queues it knows. */
  queues(): Promise<readonly string[]>
  overview(queue: string, options: { tenants: number }): Promise<QueueOverview>
  explain(queue: string, tenant: string): Promise<Explanation>
  setTenantPaused(queue: string, tenant: string, isPaused: boolean): Promise<void>
  /** Ends with the signal, with the last event if they are not to be followed, and with the server. */
  events(queue: string, options: EventsAsked): AsyncGenerator<QueueEvent>
  close(): Promise<void>
}

export interface SourceOptions extends ServerOptions, StoreOptions {}

/** Options of a command that looks at queues through a server, or without one. */
export function withSource(command: Command): Command {
  return withStore(withServer(command), 'instead of a server, the store of')
}

/** @param how - Before what each option names. */
export function withStore(command: Command, how: string): Command {
  return command
    .option('--config <file>', `${how} this config file`)
    .option('--redis <url>', `${how} this URL or socket, or embedded`)
    .option('--data <folder>', 'the folder of the embedded server (default: .sluice)')
    .option('--prefix <prefix>', 'starts every key in Redis (default: sluice)')
}

/** @param queues - Those asked for; a store has no list of its own. */
export async function useSource<Result>(
  options: SourceOptions,
  queues: readonly string[],
  use: (source: QueueSource) => Promise<Result>,
): Promise<Result> {
  const source = await openSource(options, queues)
  try {
    return await use(source)
  } finally {
    await source.close()
  }
}

async function openSource(options: SourceOptions, queues: readonly string[]): Promise<QueueSource> {
  const { config, redis, data, prefix } = options
  if ([config, redis, data, prefix].some((given) => given !== undefined)) {
    const { StoreSource } = await import('./store-source.ts')
    return StoreSource.open(options, queues)
  }
  const { ServerSource } = await import('./server-source.ts')
  return new ServerSource(options)
}
