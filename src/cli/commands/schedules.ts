import { type Command, Option } from 'commander'
import { jobBounds } from '../../engine/job-bounds.ts'
import type { ScheduleView } from '../../index.ts'
import { levels } from '../../store/names.ts'
import { newCommand, onCall } from '../command.ts'
import { sayDuration } from '../duration.ts'
import { jsonIn } from '../json-value.ts'
import { wholeNumber } from '../option-values.ts'
import { table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function schedulesCommand(): Command {
  const group = newCommand('schedules', {
    summary: 'repeating jobs: look at them, make, change, pause, run and remove them',
    examples: [
      'sluice schedules ls --queue reports',
      "sluice schedules set nightly --cron '0 3 * * *' --time-zone Europe/Berlin --type report --queue reports",
    ],
  })
  for (const command of [list(), get(), set(), pause(), resume(), run(), remove()]) group.addCommand(command)
  return group
}

interface SchedulePage {
  readonly schedules: readonly ScheduleView[]
  readonly total: number
  readonly dueSoon: number
  readonly cursor?: string
}

interface ListOptions extends QueueServerOptions {
  readonly limit: number
  readonly cursor?: string
  readonly dueWithin?: string
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the schedules of a queue by when they are due, paused ones last',
    examples: ['sluice schedules ls --queue reports', 'sluice schedules ls --due-within 5m --json'],
  })
    .option('--due-within <time>', 'only what is due that soon: 60s, 5m, 1h')
    .option('--limit <schedules>', 'at most so many', wholeNumber({ min: 1, max: 500 }), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, limit, cursor, dueWithin } = options
    const page = await useApi(options, (api) =>
      api.get<SchedulePage>(queuePath(queue, 'schedules'), { limit, cursor, dueWithin }),
    )
    if (output.isJson) for (const schedule of page.schedules) output.json(schedule)
    else if (page.schedules.length === 0) output.talk(`Queue "${queue}" has no such schedules.`)
    else output.text(table(heads, page.schedules.map(rowOf)))
    output.talk(`schedules: ${page.total}, of them due within ${dueWithin ?? '60s'}: ${page.dueSoon}`)
    if (page.cursor !== undefined) output.talk(`There are more: --cursor '${page.cursor}'`)
    return 'ok'
  })
}

const heads = ['name', 'when', 'next', 'last', 'tenant', 'type', 'ticks', 'missed']

function rowOf(view: ScheduleView) {
  const { name, cron, timeZone, everyMs, nextAt, lastAt, pausedSince, job, ticks, missedTicks } = view
  const when = cron === undefined ? `every ${sayDuration(everyMs ?? 0)}` : `${cron} ${timeZone}`
  const next = pausedSince === undefined ? instant(nextAt) : 'paused'
  return [name, when, next, instant(lastAt), job.tenant ?? 'default', job.type, ticks, missedTicks]
}

function instant(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString()
}

function get(): Command {
  const command = newCommand('get <name>', {
    summary: 'one schedule with its job and what it has counted',
    examples: ['sluice schedules get nightly --queue reports'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'schedules', args[0] as string)
    const view = await useApi(options, (api) => api.get<ScheduleView>(path))
    output.data(view, () => {
      const job = `job of every tick: ${JSON.stringify(view.job)}`
      return [table(heads, [rowOf(view)]), '', job, `for ticks that were missed: ${view.missed}`].join('\n')
    })
    return 'ok'
  })
}

interface SetOptions extends QueueServerOptions {
  readonly cron?: string
  readonly timeZone?: string
  readonly every?: string
  readonly anchor?: string
  readonly missed?: string
  readonly type: string
  readonly tenant?: string
  readonly level?: string
  readonly lane?: string
  readonly cost?: number
  readonly payload?: string
}

/** What a job may cost. */
const costs = { min: 1, max: jobBounds.cost }

function set(): Command {
  const command = newCommand('set <name>', {
    summary: 'make a schedule, or change it at once',
    details: 'Give either --cron or --every. The same again changes nothing, its next tick included.',
    examples: [
      "sluice schedules set nightly --cron '0 3 * * *' --time-zone Europe/Berlin --type report --queue reports",
      'sluice schedules set sync --every 15m --type http.request --tenant acme --payload \'{"url":"https://api.example.com/sync"}\'',
    ],
  })
    .option('--cron <pattern>', 'minute, hour, day of month, month, day of week; or @daily')
    .option('--time-zone <zone>', 'whose clocks the pattern means; UTC unless given')
    .option('--every <time>', 'elapsed time: 30s, 15m, 1h')
    .option('--anchor <instant>', 'from which that is counted: 2026-01-01T06:00:00Z')
    .addOption(
      new Option('--missed <rule>', 'of ticks that passed: make up for the latest, for all, or skip them').choices([
        ...['one', 'all', 'skip'],
      ]),
    )
    .requiredOption('--type <type>', 'type of the job of every tick')
    .option('-t, --tenant <name>', 'whom it is for')
    .addOption(new Option('--level <level>', 'where it stands').choices(levels))
    .option('--lane <name>', 'the line of its tenant it stands in')
    .option('--cost <permits>', 'permits that it takes of every limit; 1 unless given', wholeNumber(costs))
    .option('--payload <json>', 'its payload')
  return onCall<SetOptions>(withQueue(command), async ({ output, options, args }) => {
    const { cron, timeZone, every, anchor, missed, type, tenant, level, lane, cost } = options
    const payload = options.payload === undefined ? undefined : jsonIn('--payload', options.payload)
    const job = { type, tenant, level, lane, cost, payload }
    const path = queuePath(options.queue, 'schedules', args[0] as string)
    const body = { cron, timeZone, every, anchor, missed, job }
    const view = await useApi(options, (api) => api.put<ScheduleView>(path, body))
    output.data(view, () => table(heads, [rowOf(view)]))
    return 'ok'
  })
}

function pause(): Command {
  const command = newCommand('pause <name>', {
    summary: 'no ticks until it is resumed; those that pass are not missed',
    examples: ['sluice schedules pause nightly --queue reports'],
  })
  return setPaused(command, true)
}

function resume(): Command {
  const command = newCommand('resume <name>', {
    summary: 'go on with the next tick',
    examples: ['sluice schedules resume nightly --queue reports'],
  })
  return setPaused(command, false)
}

function setPaused(command: Command, paused: boolean): Command {
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'schedules', args[0] as string)
    const view = await useApi(options, (api) => api.patch<ScheduleView>(path, { paused }))
    output.data(view, () => table(heads, [rowOf(view)]))
    return 'ok'
  })
}

function run(): Command {
  const command = newCommand('run <name>', {
    summary: 'make a job of it at once, besides those of its ticks',
    examples: ['sluice schedules run nightly --queue reports'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'schedules', args[0] as string, 'run')
    const job = await useApi(options, (api) => api.post<{ id: string }>(path))
    output.data(job, () => `made ${job.id}`)
    return 'ok'
  })
}

function remove(): Command {
  const command = newCommand('rm <name>', {
    summary: 'remove it; jobs it has made stay',
    examples: ['sluice schedules rm nightly --queue reports'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'schedules', args[0] as string)
    await useApi(options, (api) => api.delete(path))
    output.data({ name: args[0], removed: true }, () => `${args[0]} is gone`)
    return 'ok'
  })
}
