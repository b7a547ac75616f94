import { type Command, Option } from 'commander'
import type { DeadLetter, JobView } from '../../index.ts'
import { CliError } from '../cli-error.ts'
import { newCommand, onCall } from '../command.ts'
import { wholeNumber } from '../option-values.ts'
import { table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function deadCommand(): Command {
  const group = newCommand('dead', {
    summary: 'look at dead letters, retry and discard them',
    examples: ['sluice dead ls --queue promotions', 'sluice dead retry normal:default:17:acme'],
  })
  for (const command of [list(), show(), retry(), discard()]) group.addCommand(command)
  return group
}

interface ListOptions extends QueueServerOptions {
  readonly limit: number
  readonly cursor?: string
  readonly tenant?: string
  readonly reason?: string
  readonly type?: string
}

const reasons = ['failed', 'discarded', 'throttled', 'stalled', 'unknown-type']

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the dead letters of a queue, newest first',
    examples: ['sluice dead ls --queue promotions', 'sluice dead ls --json | jq -r .key'],
  })
    .option('--limit <letters>', 'at most so many', wholeNumber({ min: 1, max: 500 }), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended')
    .option('-t, --tenant <name>', 'only those of this tenant')
    .addOption(new Option('--reason <reason>', 'only those that died of this').choices(reasons))
    .option('--type <type>', 'only jobs of this type')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, limit, cursor, tenant, reason, type } = options
    const query = { limit, cursor, tenant, reason, type }
    const page = await useApi(options, (api) =>
      api.get<{ letters: DeadLetter[]; cursor?: string }>(queuePath(queue, 'dead-letters'), query),
    )
    if (output.isJson) for (const letter of page.letters) output.json(letter)
    else if (page.letters.length === 0) output.talk(`Queue "${queue}" has no dead letters.`)
    else output.text(table(['key', 'tenant', 'type', 'reason', 'attempts', 'error'], page.letters.map(rowOf)))
    if (page.cursor !== undefined) output.talk(`There are more: --cursor ${page.cursor}`)
    return 'ok'
  })
}

const LONGEST_ERROR = 60

function rowOf({ key, tenant, type, reason, attempts, error }: DeadLetter) {
  return [key, tenant, type, reason, attempts, error?.message.split('\n')[0]?.slice(0, LONGEST_ERROR)]
}

function show(): Command {
  const command = newCommand('show <key>', {
    summary: 'one dead letter with its payload and the stack of its error',
    examples: ['sluice dead show normal:default:17:acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'jobs', args[0] as string)
    const job = await useApi(options, (api) => api.get<JobView>(path))
    if (job.state !== 'failed') throw new CliError('notFound', `${args[0]} is no dead letter: it is ${job.state}`)
    output.data(job, () => JSON.stringify(job, undefined, 2))
    return 'ok'
  })
}

function retry(): Command {
  const command = newCommand('retry <key>', {
    summary: 'the job runs again, as if fresh',
    examples: ['sluice dead retry normal:default:17:acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'dead-letters', args[0] as string, 'retry')
    await useApi(options, (api) => api.post(path))
    output.data({ key: args[0], retried: true }, () => `${args[0]} runs again`)
    return 'ok'
  })
}

function discard(): Command {
  const command = newCommand('discard <key>', {
    summary: 'the job is gone for good',
    examples: ['sluice dead discard normal:default:17:acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'dead-letters', args[0] as string)
    await useApi(options, (api) => api.delete(path))
    output.data({ key: args[0], discarded: true }, () => `${args[0]} is gone`)
    return 'ok'
  })
}
