import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { DeadLetter, JobView } from '../../index.ts'
import { deadReasons } from '../../store/reasons.ts'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { jsonIn } from '../json-value.ts'
import { moment, rate, wholeNumber } from '../option-values.ts'
import { table } from '../output.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'

export function deadCommand(): Command {
  const group = newCommand('dead', {
    summary: 'look at dead letters, retry and discard them',
    examples: ['sluice dead ls --queue promotions', 'sluice dead retry normal:default:1767225600000017:acme'],
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

interface LetterPage {
  readonly letters: readonly DeadLetter[]
  /** How many there were to find these among. */
  readonly looked: number
  readonly cursor?: string
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the dead letters of a queue, newest first',
    examples: ['sluice dead ls --queue promotions', 'sluice dead ls --json | jq -r .key'],
  })
    .option('--limit <letters>', 'at most so many', wholeNumber({ min: 1, max: 500 }), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended')
    .option('-t, --tenant <name>', 'only those of this tenant')
    .addOption(new Option('--reason <reason>', 'only those that died of this').choices(deadReasons))
    .option('--type <type>', 'only jobs of this type')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, limit, cursor, tenant, reason, type } = options
    const query = { limit, cursor, tenant, reason, type }
    const page = await useApi(options, (api) => api.get<LetterPage>(queuePath(queue, 'dead-letters'), query))
    if (output.isJson) for (const letter of page.letters) output.json(letter)
    else if (page.letters.length === 0) output.talk(emptyWords(page, options))
    else output.text(table(['key', 'tenant', 'type', 'reason', 'attempts', 'error'], page.letters.map(rowOf)))
    if (page.cursor !== undefined) output.talk(`There are more: --cursor ${page.cursor}`)
    return 'ok'
  })
}

function emptyWords({ looked }: LetterPage, { queue, cursor }: ListOptions): string {
  if (looked > 0) return `None of the ${looked} dead letters that were looked at fits.`
  return `Queue "${queue}" has no ${cursor === undefined ? '' : 'more '}dead letters.`
}

const LONGEST_ERROR = 60

function rowOf({ key, tenant, type, reason, attempts, error }: DeadLetter) {
  return [key, tenant, type, reason, attempts, error?.message.split('\n')[0]?.slice(0, LONGEST_ERROR)]
}

function show(): Command {
  const command = newCommand('show <key>', {
    summary: 'one dead letter with its payload and the stack of its error',
    examples: ['sluice dead show normal:default:1767225600000017:acme --queue promotions'],
  })
  return onCall<QueueServerOptions>(withQueue(command), async ({ output, options, args }) => {
    const path = queuePath(options.queue, 'jobs', args[0] as string)
    const job = await useApi(options, (api) => api.get<JobView>(path))
    if (job.state !== 'failed') throw new CliError('notFound', `${args[0]} is no dead letter: it is ${job.state}`)
    output.data(job, () => JSON.stringify(job, undefined, 2))
    return 'ok'
  })
}

interface SweepCommandOptions extends QueueServerOptions {
  readonly tenant?: string
  readonly type?: string
  readonly action?: string
  readonly reason?: string
  readonly error?: string
  readonly since?: number
  readonly until?: number
  readonly all?: true
  readonly rate?: string
  readonly cursor?: string
  readonly dryRun?: true
}

function withFilter(command: Command): Command {
  return withQueue(command)
    .option('-t, --tenant <name>', 'only those of this tenant')
    .option('--type <type>', 'only jobs of this type')
    .option('--action <name>', 'only those of this action')
    .addOption(new Option('--reason <reason>', 'only those that died of this').choices(deadReasons))
    .option('--error <text>', 'only those whose error says this')
    .option('--since <moment>', 'only those that died then or later', moment)
    .option('--until <moment>', 'only those that died then or earlier', moment)
    .option('--all', 'all of them')
    .option('--rate <rate>', 'no faster than this: 50/s', rate)
    .option('--cursor <cursor>', 'go on where an earlier call ended')
    .option('--dry-run', 'only say how many they are')
}

/** What goes with many letters only, as it is typed. */
const sweepFlags = {
  tenant: '--tenant',
  type: '--type',
  action: '--action',
  reason: '--reason',
  error: '--error',
  since: '--since',
  until: '--until',
  all: '--all',
  rate: '--rate',
  cursor: '--cursor',
  dryRun: '--dry-run',
} as const satisfies Partial<Record<keyof SweepCommandOptions, string>>

/** A key beside a filter or `--dry-run` may mean either; what is gone for good is gone. */
function refuseSweepFlags(options: SweepCommandOptions): void {
  const given = Object.entries(sweepFlags).flatMap(([name, flag]) =>
    options[name as keyof typeof sweepFlags] === undefined ? [] : [flag],
  )
  if (given.length === 0) return
  throw new CliError('usage', `a key names one dead letter: leave out the key, or ${given.join(', ')}`)
}

interface Swept {
  readonly taken: number
  readonly cursor?: string
}

// A request waits for the next letter as long as it may. Where that is not for long, it is not sent all the time.
const BETWEEN_IDLE_STEPS_MS = 1_000

/** Asks again and again until all were looked at. What is interrupted says where to go on. */
async function sweep({ output, options }: Invocation<SweepCommandOptions>, verb: 'retry' | 'discard'): Promise<'ok'> {
  const { queue, tenant, type, action, reason, error, since, until, all, rate: pace, dryRun } = options
  const filter = { tenant, type, action, reason, error, since, until, all }
  if (Object.values(filter).every((value) => value === undefined)) {
    throw new CliError(
      'usage',
      'say which: a key, --tenant, --type, --action, --reason, --error, --since, --until or --all',
    )
  }
  const path = queuePath(queue, 'dead-letters', verb)
  let { cursor } = options
  let taken = 0
  await useApi(options, async (api) => {
    for (;;) {
      const step = await api.post<Swept>(path, { filter, rate: pace, cursor, dryRun })
      taken += step.taken
      if (step.cursor === undefined) return
      if (step.cursor === cursor) await sleep(BETWEEN_IDLE_STEPS_MS)
      else output.talk(`${taken} so far; to go on here later: --cursor ${step.cursor}`)
      cursor = step.cursor
    }
  })
  const words = dryRun ? 'fit' : verb === 'retry' ? 'run again' : 'are gone'
  output.data({ taken, dryRun: dryRun === true }, () => `${taken} dead letters ${words}`)
  return 'ok'
}

function retry(): Command {
  const command = newCommand('retry [key]', {
    summary: 'the job runs again, as if fresh; or all that fit',
    details:
      'Give the key of one, or options that say which. --payload goes with a key, the other options without one.',
    examples: [
      'sluice dead retry normal:default:1767225600000017:acme --queue promotions',
      'sluice dead retry --tenant acme --error timeout --rate 50/s',
    ],
  }).option('--payload <json>', 'run the one with this payload instead of its own')
  return onCall<SweepCommandOptions & { payload?: string }>(withFilter(command), async (call) => {
    const { output, options, args } = call
    if (args[0] === undefined) {
      if (options.payload !== undefined) throw new CliError('usage', '--payload needs the key of the letter it is for')
      return sweep(call, 'retry')
    }
    refuseSweepFlags(options)
    const path = queuePath(options.queue, 'dead-letters', args[0], 'retry')
    const body = options.payload === undefined ? undefined : { payload: jsonIn('--payload', options.payload) }
    await useApi(options, (api) => api.post(path, body))
    output.data({ key: args[0], retried: true }, () => `${args[0]} runs again`)
    return 'ok'
  })
}

function discard(): Command {
  const command = newCommand('discard [key]', {
    summary: 'the job is gone for good; or all that fit',
    details: 'Give the key of one, or options that say which.',
    examples: [
      'sluice dead discard normal:default:1767225600000017:acme --queue promotions',
      'sluice dead discard --reason unknown-type --until 2026-01-01',
    ],
  })
  return onCall<SweepCommandOptions>(withFilter(command), async (call) => {
    const { output, options, args } = call
    if (args[0] === undefined) return sweep(call, 'discard')
    refuseSweepFlags(options)
    const path = queuePath(options.queue, 'dead-letters', args[0])
    await useApi(options, (api) => api.delete(path))
    output.data({ key: args[0], discarded: true }, () => `${args[0]} is gone`)
    return 'ok'
  })
}
