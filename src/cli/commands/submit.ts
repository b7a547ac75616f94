import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import type { ActionView } from '../../index.ts'
import { levels } from '../../store/names.ts'
import type { ApiClient } from '../api-client.ts'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { inChunks, readJobLines } from '../job-lines.ts'
import { nameOfInput, type ReadOptions } from '../ndjson.ts'
import { decimal, duration, headerText } from '../option-values.ts'
import type { Output } from '../output.ts'
import { ProgressBars } from '../progress-bar.ts'
import { actionPath, type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'
import { watchAction } from '../watch-action.ts'

interface SubmitOptions extends QueueServerOptions {
  readonly tenant: string
  readonly type?: string
  readonly level?: string
  readonly action?: string
  readonly keepResults?: true
  readonly failFast?: true
  readonly maxFailureRatio?: number
  readonly payloads?: true
  readonly seal: boolean
  readonly wait?: true
  readonly timeout?: number
  readonly dryRun?: true
}

/** The action, with what this submit has added to it. */
interface SubmittedAction extends ActionView {
  readonly accepted: number
  readonly duplicates: number
}

export function submitCommand(): Command {
  const command = newCommand('submit [file]', {
    summary: 'submit a file of jobs, or standard input, as one action',
    details:
      'Each line is a job: {"payload":{…},"id":"…","type":"…"}; only payload is needed. With --payloads each line is the ' +
      'payload itself. Under the same --action it can be submitted again after a failure or Ctrl-C, which say its name: it ' +
      'goes on after the lines that were accepted.',
    examples: [
      'sluice submit jobs.ndjson --queue promotions --tenant acme --type send --wait',
      'zcat urls.ndjson.gz | sluice submit - --tenant acme --type http.request --payloads',
    ],
  })
    .requiredOption('-t, --tenant <name>', 'whom it is for')
    .option('--type <type>', 'of jobs that name none', 'http.request')
    .addOption(new Option('--level <level>', 'before or behind others').choices(levels))
    .option('--action <name>', 'its name; one is made up unless given', headerText)
    .option('--keep-results', 'keep what the jobs return, for "sluice actions results"')
    .option('--fail-fast', 'the first job that fails ends the action')
    .option(
      '--max-failure-ratio <share>',
      'it fails when more than this share of its jobs failed',
      decimal({ min: 0, max: 1 }),
    )
    .option('--payloads', 'each line is the payload of a job')
    .option('--no-seal', 'leave it open: more jobs come with "sluice actions add"')
    .option('--wait', 'show how it goes on, until it ends')
    .option('--timeout <time>', 'of --wait', duration)
    .option('--dry-run', 'read and check the file, and submit nothing')
  return onCall<SubmitOptions>(withQueue(command), submit)
}

async function submit({ output, options, args }: Invocation<SubmitOptions>): Promise<ExitName> {
  if (options.timeout !== undefined && !options.wait) throw new CliError('usage', '--timeout needs --wait')
  const path = args[0] ?? '-'
  // A file is read to its end before anything of it is submitted; what comes through a pipe cannot be.
  const jobs = path === '-' && !options.dryRun ? undefined : await countJobs(path, options)
  if (options.dryRun) {
    output.data({ jobs, submitted: false }, () => `${nameOfInput(path)} has ${jobs} jobs; nothing was submitted`)
    return 'ok'
  }
  return useApi(options, async (api) => {
    const interruption = Interruption.listen(() => {})
    try {
      const action = await upload(api, path, options, { shown: sending(output, jobs), interruption })
      if (!options.wait) {
        output.data(action, () => `${action.id}: ${action.accepted} jobs; follow it: sluice actions watch ${action.id}`)
        return interruption.exit ?? 'ok'
      }
      const exit = await watchAction(api, action.id, { output, interruption, timeoutMs: options.timeout })
      const end = await api.get<ActionView>(actionPath(action.id))
      output.data(end, () => `${end.id}: ${end.state}, ${end.counts.succeeded} succeeded, ${end.counts.failed} failed`)
      return exit
    } finally {
      interruption.ignore()
    }
  })
}

async function countJobs(path: string, options: SubmitOptions): Promise<number> {
  let jobs = 0
  for await (const _ of linesOf(path, options)) jobs += 1
  return jobs
}

/** The jobs of the file, as the server takes them. */
function linesOf(path: string, { payloads }: SubmitOptions, reading: ReadOptions = {}): AsyncGenerator<string> {
  return readJobLines(path, { isPayload: payloads === true, ...reading })
}

/** Shows how many have gone out, of how many if that is known. */
function sending(output: Output, total: number | undefined) {
  return async function* (lines: AsyncIterable<string>): AsyncGenerator<string> {
    const bars = new ProgressBars(output)
    let done = 0
    try {
      for await (const line of lines) {
        done += 1
        bars.update([{ label: 'submitting', done, total }])
        yield line
      }
    } finally {
      bars.clear()
    }
  }
}

async function upload(
  api: ApiClient,
  path: string,
  options: SubmitOptions,
  { shown, interruption }: { shown: ReturnType<typeof sending>; interruption: Interruption },
): Promise<SubmittedAction> {
  const { queue, tenant, type, level, keepResults, failFast, maxFailureRatio, seal } = options
  // Named here, so that a submit that breaks off can be repeated.
  const name = options.action ?? randomUUID()
  const { signal } = interruption
  const lines = inChunks(shown(linesOf(path, options, { signal })))
  try {
    return await api.upload<SubmittedAction>(queuePath(queue, 'actions'), lines, {
      query: { tenant, type, level, keepResults, failFast, maxFailureRatio, seal: seal ? undefined : false },
      headers: { 'idempotency-key': JSON.stringify(name) },
      signal,
    })
  } catch (error) {
    if (interruption.exit !== undefined) {
      throw brokenOff(new CliError(interruption.exit, 'not all jobs were submitted', { cause: error }), name)
    }
    // What the server itself has refused is no stream that broke off.
    const isBrokenOff = error instanceof CliError && error.details.status === undefined
    if (!isBrokenOff || (error.exit !== 'unreachable' && path !== '-')) throw error
    throw brokenOff(error, name)
  }
}

/** The server has some of the jobs. Nobody else knows the name under which the rest belongs to them. */
function brokenOff(error: CliError, action: string): CliError {
  const { exit, message, details } = error
  return new CliError(exit, `${message}; to go on, submit the same jobs with --action ${action}`, {
    cause: error,
    details: { ...details, action },
  })
}
