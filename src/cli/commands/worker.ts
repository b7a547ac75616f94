import type { Command } from 'commander'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { commaList } from '../option-values.ts'
import { type ProcessOptions, processConfig, withProcessOptions } from '../serve/process-options.ts'

interface WorkerOptions extends ProcessOptions {
  readonly only?: readonly string[]
}

export function workerCommand(): Command {
  const command = newCommand('worker', {
    summary: 'run jobs, without an API',
    details:
      'Serves the queues of the config file and the command line: http.request, and the processors of the config file. ' +
      'SIGTERM and Ctrl-C let running jobs end; a second one ends the process at once.',
    examples: [
      'sluice worker --redis redis://redis.internal:6379 --only promotions,mail',
      'sluice worker --queue default=500/s --allow-host api.example.com',
    ],
  }).option('--only <queues>', 'serve only these', commaList)
  return onCall<WorkerOptions>(withProcessOptions(command), work)
}

async function work({ output, options }: Invocation<WorkerOptions>): Promise<ExitName> {
  const config = await processConfig(options)
  const names = options.only ?? Object.keys(config.queues)
  const unknown = names.find((name) => config.queues[name] === undefined)
  if (unknown !== undefined) {
    throw new CliError(
      'usage',
      `--only: no queue is called ${unknown}; there are ${Object.keys(config.queues).join(', ')}`,
    )
  }
  const interruption = Interruption.listen(() => output.talk('Letting running jobs end; once more to end at once.'))
  const { declareSchedules, openQueues, openSluice, startWorker, untilReady } = await import('../serve/open-queues.ts')
  const sluice = openSluice(config)
  const endings: (() => void)[] = []
  try {
    await untilReady(sluice, config)
    const queues = openQueues(sluice, Object.fromEntries(names.map((name) => [name, config.queues[name] ?? {}])))
    await declareSchedules(queues, config.queues)
    for (const [name, queue] of Object.entries(queues)) endings.push(startWorker(queue, config.queues[name] ?? {}))
    output.data({ queues: names }, () => `Working on ${names.join(', ')}. Ctrl-C ends it.`)
    await interruption.asked()
  } finally {
    await sluice.close()
    for (const end of endings) end()
    interruption.ignore()
  }
  return 'ok'
}
