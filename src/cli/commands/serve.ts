import type { AddressInfo } from 'node:net'
import type { Command } from 'commander'
import type { FastifyInstance } from 'fastify'
import type { SluiceConfig } from '../../config/define-config.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { defaultHost, defaultPort } from '../default-url.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { listenError } from '../listen-error.ts'
import { wholeNumber } from '../option-values.ts'
import { type ProcessOptions, processConfig, withProcessOptions } from '../serve/process-options.ts'

interface ServeOptions extends ProcessOptions {
  readonly host?: string
  readonly port?: number
  readonly workers: boolean
  readonly log?: true
}

export function serveCommand(): Command {
  const command = newCommand('serve', {
    summary: 'start the HTTP API, and workers beside it',
    details:
      'On an embedded store unless told otherwise. Without API keys it listens to this machine only. ' +
      'SIGTERM and Ctrl-C let running requests and jobs end; a second one ends the process at once.',
    examples: [
      'sluice serve --queue promotions=500/s --allow-host api.example.com',
      'sluice serve --no-workers --redis redis://redis.internal:6379 --config sluice.config.ts',
    ],
  })
    .option('--host <host>', `where it listens (default: ${defaultHost})`)
    .option('--port <port>', `(default: ${defaultPort}; 0: a free one)`, wholeNumber({ min: 0, max: 65_535 }))
    .option('--no-workers', 'only the API: jobs are run by "sluice worker"')
    .option('--log', 'a line of JSON on standard error for each request')
  return onCall<ServeOptions>(withProcessOptions(command), serve)
}

async function serve({ output, options }: Invocation<ServeOptions>): Promise<ExitName> {
  const config = await processConfig(options)
  const host = options.host ?? config.host ?? defaultHost
  const port = options.port ?? config.port ?? defaultPort
  const { createServer, refuseOpenBinding } = await import('../../http/index.ts')
  refuseOpenBinding(host, config.keys ?? [])
  const interruption = Interruption.listen(() => output.talk('Letting what runs end; once more to end at once.'))
  const { declareSchedules, openQueues, openSluice, startWorker, untilReady } = await import('../serve/open-queues.ts')
  const sluice = openSluice(config)
  const endings: (() => void)[] = []
  let server: FastifyInstance | undefined
  try {
    await untilReady(sluice, config)
    const queues = openQueues(sluice, config.queues)
    await declareSchedules(queues, config.queues)
    server = createServer({ sluice, queues, keys: config.keys ?? [], log: logOf(options) })
    const url = await listen(server, { host, port })
    if (options.workers) {
      for (const [name, queue] of Object.entries(queues)) endings.push(startWorker(queue, config.queues[name] ?? {}))
    }
    announce({ output, options, config, url, queues: Object.keys(queues) })
    await interruption.asked()
  } finally {
    await server?.close()
    await sluice.close()
    for (const end of endings) end()
    interruption.ignore()
  }
  return 'ok'
}

function logOf({ log }: ServeOptions) {
  return { level: log ? ('info' as const) : ('warn' as const), stream: process.stderr }
}

async function listen(server: FastifyInstance, address: { host: string; port: number }): Promise<string> {
  try {
    await server.listen(address)
  } catch (error) {
    throw listenError(error, address)
  }
  const { address: at, family, port } = server.server.address() as AddressInfo
  return `http://${family === 'IPv6' ? `[${at}]` : at}:${port}`
}

function announce(parts: {
  output: Invocation['output']
  options: ServeOptions
  config: SluiceConfig
  url: string
  queues: readonly string[]
}): void {
  const { output, options, config, url, queues } = parts
  const workers = options.workers ? 'with workers' : 'without workers'
  output.data({ url, queues, workers: options.workers }, () => `${url} serves ${queues.join(', ')} ${workers}`)
  output.talk(`Its API is described at ${url}/docs. Ctrl-C ends it.`)
  if ((config.keys ?? []).length === 0) output.talk('No API keys: everybody on this machine may do everything.')
}
