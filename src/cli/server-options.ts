import { type Command, Option } from 'commander'
import { isDots } from '../store/names.ts'
import type { ApiClient } from './api-client.ts'
import { CliError } from './cli-error.ts'
import { defaultUrl } from './default-url.ts'

/** How a command reaches the server it talks to. */
export interface ServerOptions {
  readonly url: string
  readonly key?: string
}

/** A server, and one of its queues. */
export interface QueueServerOptions extends ServerOptions {
  readonly queue: string
}

export function withServer(command: Command): Command {
  return command
    .addOption(new Option('--url <url>', 'where "sluice serve" listens').env('SLUICE_URL').default(defaultUrl))
    .addOption(new Option('--key <key>', 'an API key, where the server wants one').env('SLUICE_KEY'))
}

export function withQueue(command: Command): Command {
  return withServer(command).addOption(
    new Option('-q, --queue <name>', 'the queue').env('SLUICE_QUEUE').default('default'),
  )
}

/** The API for as long as `use` takes. */
export async function useApi<Result>(
  { url, key }: ServerOptions,
  use: (api: ApiClient) => Promise<Result>,
): Promise<Result> {
  // An HTTP client is a large thing to load for somebody who wants the help.
  const { ApiClient } = await import('./api-client.ts')
  const api = new ApiClient({ url, key })
  try {
    return await use(api)
  } finally {
    await api.close()
  }
}

/** Path of a queue, with what is below it; names may hold anything. */
export function queuePath(queue: string, ...rest: readonly string[]): string {
  return ['/v1/queues', ...[queue, ...rest].map(toPathPart)].join('/')
}

export function actionPath(id: string, ...rest: readonly string[]): string {
  return ['/v1/actions', toPathPart(id), ...rest].join('/')
}

/** One that only changes the path would ask for something else: for all tenants, say, instead of one. */
function toPathPart(name: string): string {
  if (isDots(name)) throw new CliError('usage', 'a name must not be "." or "..", which no URL can name')
  return encodeURIComponent(name)
}
