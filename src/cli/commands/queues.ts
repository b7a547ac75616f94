import { type Command, Option } from 'commander'
import { type Level, levels } from '../../store/names.ts'
import type { ApiClient } from '../api-client.ts'
import { newCommand, onCall } from '../command.ts'
import { table } from '../output.ts'
import {
  type QueueServerOptions,
  queuePath,
  type ServerOptions,
  useApi,
  withQueue,
  withServer,
} from '../server-options.ts'

export function queuesCommand(): Command {
  const group = newCommand('queues', {
    summary: 'the queues of a server: look at them, pause and resume them, whole or a level',
    examples: ['sluice queues ls', 'sluice queues pause --queue promotions'],
  })
  for (const command of [list(), pause(), resume()]) group.addCommand(command)
  return group
}

/** As GET /v1/queues/:queue shows it. */
interface QueueShown {
  readonly name: string
  readonly paused: boolean
  readonly levelsPaused: Readonly<Record<Level, boolean>>
  readonly counts: { readonly waiting: number; readonly delayed: number; readonly running: number }
}

const heads = ['queue', 'state', 'levels paused', 'waiting', 'delayed', 'running']

function rowOf({ name, paused, levelsPaused, counts }: QueueShown) {
  const stopped = levels.filter((level) => levelsPaused[level]).join(' ')
  return [name, paused ? 'paused' : 'running', stopped, counts.waiting, counts.delayed, counts.running]
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the queues of a server, with what is paused and how much there is to do',
    examples: ['sluice queues ls', 'sluice queues ls --json | jq -r .name'],
  })
  return onCall<ServerOptions>(withServer(command), async ({ output, options }) => {
    const queues = await useApi(options, showAll)
    if (output.isJson) for (const queue of queues) output.json(queue)
    else if (queues.length === 0) output.talk('The server has no queues.')
    else output.text(table(heads, queues.map(rowOf)))
    return 'ok'
  })
}

async function showAll(api: ApiClient): Promise<QueueShown[]> {
  const { queues } = await api.get<{ queues: { name: string }[] }>('/v1/queues')
  return Promise.all(queues.map(({ name }) => api.get<QueueShown>(queuePath(name))))
}

function pause(): Command {
  const command = newCommand('pause', {
    summary: 'no job of the queue, or of one of its levels, starts until it is resumed; those that run go on',
    examples: ['sluice queues pause --queue promotions', 'sluice queues pause --level low'],
  })
  return setPaused(command, true)
}

function resume(): Command {
  const command = newCommand('resume', {
    summary: 'let jobs of the queue, or of one of its levels, start again',
    examples: ['sluice queues resume --queue promotions', 'sluice queues resume --level low'],
  })
  return setPaused(command, false)
}

interface PauseOptions extends QueueServerOptions {
  readonly level?: Level
}

function setPaused(command: Command, paused: boolean): Command {
  command.addOption(new Option('--level <level>', 'only this level').choices(levels))
  return onCall<PauseOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, level } = options
    const change = level === undefined ? { paused } : { levelsPaused: { [level]: paused } }
    const shown = await useApi(options, (api) => api.patch<QueueShown>(queuePath(queue), change))
    output.data(shown, () => table(heads, [rowOf(shown)]))
    return 'ok'
  })
}
