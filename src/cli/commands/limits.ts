import type { Command } from 'commander'
import type { LimitStatus } from '../../index.ts'
import { type Level, levels } from '../../store/names.ts'
import { newCommand, onCall } from '../command.ts'
import { jsonIn } from '../json-value.ts'
import { rateIn } from '../option-values.ts'
import { table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function limitsCommand(): Command {
  const group = newCommand('limits', {
    summary: 'how the limits of a queue stand, and change them while it runs',
    examples: ['sluice limits ls --queue promotions', 'sluice limits set queue 300/s --queue promotions'],
  })
  for (const command of [list(), set(), reset()]) group.addCommand(command)
  return group
}

interface ListOptions extends QueueServerOptions {
  readonly tenant?: string
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the limits of a queue and its levels, with what is left of them',
    examples: ['sluice limits ls --queue promotions', 'sluice limits ls --tenant acme --json'],
  }).option('-t, --tenant <name>', 'those of this tenant as well')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, tenant } = options
    const { limits } = await useApi(options, (api) =>
      api.get<{ limits: LimitStatus[] }>(queuePath(queue, 'limits'), { tenant }),
    )
    if (output.isJson) for (const limit of limits) output.json(limit)
    else if (limits.length === 0) output.talk(`Queue "${queue}" has no limits.`)
    else output.text(table(heads, limits.map(rowOf)))
    return 'ok'
  })
}

const heads = ['name', 'of', 'kind', 'limit', 'used', 'remaining', 'per second', 'closed until']

function rowOf({ name, scope, kind, limit, used, remaining, effectivePerSecond, closedUntil }: LimitStatus) {
  const until = typeof closedUntil === 'number' ? new Date(closedUntil).toISOString() : undefined
  return [name, scope, kind, limit, used, remaining, effectivePerSecond, until]
}

function set(): Command {
  const command = newCommand('set <name> <limit>', {
    summary: 'change a limit on every worker at once, for the backlog as well',
    details:
      'The name is queue, tenant (the template of every tenant), high, normal, low, or that of a limit of your own. ' +
      'The limit is a rate such as 300/s, or a definition as JSON. It stays changed until it is changed again or reset.',
    examples: [
      'sluice limits set queue 300/s --queue promotions',
      `sluice limits set daily '{"kind":"window","limit":20000000,"windowMs":86400000}'`,
    ],
  })
  return change(command, ([name = '', given = '']) => {
    // What a definition must have the server says, as for everybody.
    const limit = given.trimStart().startsWith('{') ? jsonIn(name, given) : rateIn(name, given)
    return { change: isLevel(name) ? { levels: { [name]: limit } } : { [name]: limit } }
  })
}

function reset(): Command {
  const command = newCommand('reset <name>', {
    summary: 'set a limit back to what the code or config file says',
    examples: ['sluice limits reset queue --queue promotions'],
  })
  return change(command, ([name = '']) => {
    const scope = isLevel(name) || name === 'tenant' ? name : 'queue'
    return { reset: [{ scope, name }] }
  })
}

function isLevel(name: string): boolean {
  return levels.includes(name as Level)
}

/** A command that changes limits and shows how they stand then. */
function change(command: Command, patchOf: (args: readonly (string | undefined)[]) => object): Command {
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'limits')
    const answer = await useApi(options, (api) => api.patch<{ limits: LimitStatus[] }>(path, patchOf(args)))
    output.data(answer, () => table(heads, answer.limits.map(rowOf)))
    return 'ok'
  })
}
