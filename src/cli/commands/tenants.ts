import { type Command, Option } from 'commander'
import { definedOnly } from '../../defined-only.ts'
import type { Explanation, TenantCongestion, TenantView } from '../../index.ts'
import { levels } from '../../store/names.ts'
import { CliError } from '../cli-error.ts'
import { newCommand, onCall } from '../command.ts'
import { sayDuration } from '../duration.ts'
import { showExplanation } from '../explanation.ts'
import { decimal, rate, wholeNumber } from '../option-values.ts'
import { type Output, table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function tenantsCommand(): Command {
  const group = newCommand('tenants', {
    summary: 'look at the tenants of a queue, pause and weigh them',
    examples: ['sluice tenants ls --queue promotions', 'sluice tenants set acme --weight 3'],
  })
  for (const command of [list(), get(), explain(), pause(), resume(), unpark(), set()]) group.addCommand(command)
  return group
}

interface ListOptions extends QueueServerOptions {
  readonly limit: number
  readonly cursor?: string
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'tenants that have work or are paused',
    examples: ['sluice tenants ls --queue promotions', 'sluice tenants ls --json | jq -r .tenant'],
  })
    .option('--limit <tenants>', 'at most so many', wholeNumber({ min: 1, max: 500 }), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, limit, cursor } = options
    const page = await useApi(options, (api) =>
      api.get<{ tenants: TenantView[]; cursor?: string }>(queuePath(queue, 'tenants'), { limit, cursor }),
    )
    if (output.isJson) for (const tenant of page.tenants) output.json(tenant)
    else if (page.tenants.length === 0) output.talk(`No tenant of queue "${queue}" has work or is paused.`)
    else output.text(table(heads, page.tenants.map(rowOf)))
    if (page.cursor !== undefined) output.talk(`There are more: --cursor ${page.cursor}`)
    return 'ok'
  })
}

const heads = ['tenant', 'state', 'waiting', 'delayed', 'running', 'weight', 'parked by']

function rowOf({ tenant, state, waiting, delayed, running, weight, parkedBy }: TenantView) {
  return [tenant, state, waiting, delayed, running, weight, parkedBy]
}

function get(): Command {
  const command = newCommand('get <tenant>', {
    summary: 'one tenant as it stands, and how far it is behind',
    examples: ['sluice tenants get acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const name = args[0] as string
    const [tenant, congestion] = await useApi(options, (api) =>
      Promise.all([
        api.get<TenantView>(queuePath(options.queue, 'tenants', name)),
        api.get<TenantCongestion>(queuePath(options.queue, 'tenants', name, 'congestion')),
      ]),
    )
    output.data({ ...tenant, congestion }, () =>
      table([...heads, ...congestionHeads], [[...rowOf(tenant), ...congestionRow(congestion)]]),
    )
    return 'ok'
  })
}

const congestionHeads = ['congestion', 'speed', 'backoff', 'all started in', 'throttles', 'per job']

function congestionRow({ level, speed, backoffMs, etaMs, throttles, averageThrottlesPerJob }: TenantCongestion) {
  return [level, `${speed}/s`, sayDuration(backoffMs), sayDuration(etaMs), throttles, averageThrottlesPerJob]
}

function explain(): Command {
  const command = newCommand('explain <tenant>', {
    summary: 'why no further job of it runs now: every gate in order, and which binds',
    examples: ['sluice tenants explain acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'tenants', args[0] as string, 'explain')
    showExplanation(output, await useApi(options, (api) => api.get<Explanation>(path)))
    return 'ok'
  })
}

function show(output: Output, tenant: TenantView): void {
  output.data(tenant, () => table(heads, [rowOf(tenant)]))
}

function pause(): Command {
  return change(
    newCommand('pause <tenant>', {
      summary: 'none of its jobs start until it is resumed',
      examples: ['sluice tenants pause acme --queue promotions'],
    }),
    () => ({ paused: true }),
  )
}

function resume(): Command {
  return change(
    newCommand('resume <tenant>', {
      summary: 'its jobs start again',
      examples: ['sluice tenants resume acme --queue promotions'],
    }),
    () => ({ paused: false }),
  )
}

function unpark(): Command {
  const command = newCommand('unpark [tenant]', {
    summary: 'back in line now, one or all; limits are asked again with the turn',
    examples: ['sluice tenants unpark acme --queue promotions', 'sluice tenants unpark --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const [tenant] = args
    if (tenant !== undefined) {
      const path = queuePath(options.queue, 'tenants', tenant, 'unpark')
      show(output, await useApi(options, (api) => api.post<TenantView>(path)))
      return 'ok'
    }
    const found = await useApi(options, (api) => api.post<{ unparked: number }>(queuePath(options.queue, 'unpark')))
    output.data(found, () => `${found.unparked} tenants go back in line`)
    return 'ok'
  })
}

interface SetOptions {
  readonly weight?: number
  readonly basePriority?: number
  readonly level?: string
  readonly rate?: string
}

function set(): Command {
  const command = newCommand('set <tenant>', {
    summary: 'its weight, head start, level and limit; what is not given stays',
    examples: ['sluice tenants set acme --weight 3', 'sluice tenants set acme --rate 50/s --level low'],
  })
    .option(
      '--weight <share>',
      'its share against the others: 3 gets three times as much',
      decimal({ min: 0.01, max: 1_000 }),
    )
    .option(
      '--base-priority <ms>',
      'a head start (negative) or handicap in ms',
      decimal({ min: -1_000_000_000_000, max: 1_000_000_000_000 }),
    )
    .addOption(
      new Option('--level <level>', 'where its jobs stand, whatever their level; none takes it off').choices([
        ...levels,
        'none',
      ]),
    )
    .option('--rate <rate>', 'its own limit instead of that of every tenant: 50/s; none takes it off', rateOrNone)
  return change<SetOptions>(command, patchOf)
}

function rateOrNone(text: string): string {
  return text === 'none' ? text : rate(text)
}

function patchOf({ weight, basePriority, level, rate: limit }: SetOptions): object {
  const patch = definedOnly({
    weight,
    basePriority,
    level: level === 'none' ? null : level,
    limits: limit && { tenant: limit === 'none' ? null : limit },
  })
  if (Object.keys(patch).length > 0) return patch
  throw new CliError('usage', 'say what to set: --weight, --base-priority, --level or --rate')
}

/** A command that changes the tenant and shows how it stands then. */
function change<Options extends object>(command: Command, patch: (options: Options) => object): Command {
  return onCall<QueueServerOptions & Options>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'tenants', args[0] as string)
    show(output, await useApi(options, (api) => api.patch<TenantView>(path, patch(options))))
    return 'ok'
  })
}
