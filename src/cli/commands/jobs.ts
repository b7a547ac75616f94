import { type Command, Option } from 'commander'
import type { CancelReply, Explanation, JobView, RunDelayedSummary, RunNowReply } from '../../index.ts'
import { delayReasons } from '../../store/reasons.ts'
import { CliError } from '../cli-error.ts'
import { newCommand, onCall } from '../command.ts'
import { showExplanation } from '../explanation.ts'
import { table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function jobsCommand(): Command {
  const group = newCommand('jobs', {
    summary: 'look at one job, ask why it waits, run it now, cancel it',
    examples: ['sluice jobs explain order-17 --tenant acme', 'sluice jobs get normal:default:1767225600000017:acme'],
  })
  for (const command of [get(), explain(), runNow(), runDelayed(), cancel()]) group.addCommand(command)
  return group
}

interface JobOptions extends QueueServerOptions {
  readonly tenant?: string
  readonly action?: string
}

function withOwner(command: Command): Command {
  return withQueue(command)
    .option('-t, --tenant <name>', 'the tenant a given id belongs to; a generated id needs none')
    .option('--action <name>', 'the action a given id was submitted with')
}

function get(): Command {
  const command = newCommand('get <id>', {
    summary: 'what is known of a job',
    examples: ['sluice jobs get order-17 --tenant acme --queue promotions'],
  })
  return onCall<JobOptions>(withOwner(command), async ({ output, options, args }) => {
    const { queue, tenant, action } = options
    const path = queuePath(queue, 'jobs', args[0] as string)
    const job = await useApi(options, (api) => api.get<JobView>(path, { tenant, action }))
    output.data(job, () => wordsOf(job))
    return 'ok'
  })
}

const heads = ['job', 'tenant', 'type', 'state', 'reason', 'attempts', 'due']

function wordsOf({ id, tenant, type, state, reason, attempts, dueAt, payload, error }: JobView): string {
  const due = dueAt === undefined ? undefined : new Date(dueAt).toISOString()
  const row = table(heads, [[id, tenant, type, state, reason, attempts, due]])
  // Of one that has ended nothing but its state may be left.
  const kept = payload === undefined ? [] : ['', `payload: ${JSON.stringify(payload)}`]
  const failed = error === undefined ? [] : [`error: ${error.name}: ${error.message}`]
  return [row, ...kept, ...failed].join('\n')
}

function explain(): Command {
  const command = newCommand('explain <id>', {
    summary: 'why a job does not run now: every gate in order, and which binds',
    examples: ['sluice jobs explain order-17 --tenant acme --queue promotions'],
  })
  return onCall<JobOptions>(withOwner(command), async ({ output, options, args }) => {
    const { queue, tenant, action } = options
    const path = queuePath(queue, 'jobs', args[0] as string, 'explain')
    showExplanation(output, await useApi(options, (api) => api.get<Explanation>(path, { tenant, action })))
    return 'ok'
  })
}

function runNow(): Command {
  const command = newCommand('run <id>', {
    summary: 'a delayed job is due now',
    examples: ['sluice jobs run order-17 --tenant acme --queue promotions'],
  })
  return onCall<JobOptions>(withOwner(command), async ({ output, options, args }) => {
    const { queue, tenant, action } = options
    const path = queuePath(queue, 'jobs', args[0] as string, 'run')
    const { state } = await useApi(options, (api) =>
      api.post<{ state: RunNowReply }>(path, undefined, { tenant, action }),
    )
    output.data({ id: args[0], state }, () => `${args[0]}: ${state}`)
    return state === 'due' ? 'ok' : 'conflict'
  })
}

interface DelayedOptions extends QueueServerOptions {
  readonly tenant?: string
  readonly type?: string
  readonly action?: string
  readonly reason?: string
  readonly all?: true
}

function runDelayed(): Command {
  const command = withQueue(
    newCommand('run-delayed', {
      summary: 'all delayed jobs that fit are due now',
      examples: ['sluice jobs run-delayed --tenant acme --reason retry', 'sluice jobs run-delayed --all'],
    }),
  )
    .option('-t, --tenant <name>', 'only those of this tenant')
    .option('--type <type>', 'only jobs of this type')
    .option('--action <name>', 'only those of this action')
    .addOption(new Option('--reason <reason>', 'only those that wait for this').choices(delayReasons))
    .option('--all', 'all of them')
  return onCall<DelayedOptions>(command, async ({ output, options }) => {
    const { queue, tenant, type, action, reason, all } = options
    const filter = { tenant, type, action, reason }
    if (!all && Object.values(filter).every((value) => value === undefined)) {
      throw new CliError('usage', 'say which: --tenant, --type, --action, --reason or --all')
    }
    const found = { looked: 0, due: 0 }
    await useApi(options, async (api) => {
      let cursor: string | undefined
      do {
        const step = await api.post<RunDelayedSummary>(queuePath(queue, 'delayed', 'run'), { ...filter, cursor })
        found.looked += step.looked
        found.due += step.due
        cursor = step.cursor
      } while (cursor !== undefined)
    })
    output.data(found, () => `${found.due} jobs are due now`)
    return 'ok'
  })
}

function cancel(): Command {
  const command = newCommand('cancel <id>', {
    summary: 'a job that waits is gone at once, one that runs is told',
    examples: ['sluice jobs cancel order-17 --tenant acme --queue promotions'],
  })
  return onCall<JobOptions>(withOwner(command), async ({ output, options, args }) => {
    const { queue, tenant, action } = options
    const path = queuePath(queue, 'jobs', args[0] as string, 'cancel')
    const { state } = await useApi(options, (api) =>
      api.post<{ state: CancelReply }>(path, undefined, { tenant, action }),
    )
    output.data({ id: args[0], state }, () => `${args[0]}: ${state}`)
    return 'ok'
  })
}
