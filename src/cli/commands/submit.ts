import { randomUUID } from 'node:crypto'
import type { Command } from 'commander'
import type { ActionView } from '../../index.ts'
import type { ApiClient } from '../api-client.ts'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { nameOfInput, readJsonLines } from '../ndjson.ts'
import { decimal, duration } from '../option-values.ts'
import { type QueueServerOptions, queuePath, useApi, withQueue } from '../server-options.ts'
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

export function submitCommand(): Command {
  const command = newCommand('submit [file]', {
    summary: 'submit a file of jobs, or standard input, as one action',
    details:
      'Each line is a job: {"payload":{…},"id":"…","type":"…"}; only payload is needed. With --payloads each line is the ' +
      'payload itself. Under the same --action it can be submitted again after a failure: it goes on after the lines ' +
      'that were accepted.',
    examples: [
      'sluice submit jobs.ndjson --queue promotions --tenant acme --type send --wait',
      'zcat urls.ndjson.gz | sluice submit - --tenant acme --type http.request --payloads',
    ],
  })
    .requiredOption('-t, --tenant <name>', 'whom it is for')
    .option('--type <type>', 'of jobs that name none', 'http.request')
    .option('--level <level>', 'high, normal or low')
    .option('--action <name>', 'its name; one is made up unless given')
    .option('--keep-results', 'keep what the jobs return, for "sluice actions results"')
    .option('--fail-fast', 'the first job that fails ends the action')
    .option(
      '--max-failure-ratio <share>',
      'it fails when more than this share of its jobs failed',
      decimal({ min: 0, max: 1 }),
    )
    .option('--payloads', 'each line is the payload of a job')
    .option('--no-seal', 'leave it open: more jobs come, under the same --action')
    .option('--wait', 'show how it goes on, until it ends')
    .option('--timeout <time>', 'of --wait', duration)
    .option('--dry-run', 'read and check the file, and submit nothing')
  return onCall<SubmitOptions>(withQueue(command), submit)
}

async function submit({ output, options, args }: Invocation<SubmitOptions>): Promise<ExitName> {
  const path = args[0] ?? '-'
  if (options.dryRun) {
    let jobs = 0
    for await (const _ of jobLines(path, options)) jobs += 1
    output.data({ jobs, submitted: false }, () => `${nameOfInput(path)} has ${jobs} jobs; nothing was submitted`)
    return 'ok'
  }
  return useApi(options, async (api) => {
    const action = await upload(api, path, options)
    if (!options.wait) {
      output.data(
        action,
        () => `${action.id} has ${action.counts.total} jobs; watch it: sluice actions watch ${action.id}`,
      )
      return 'ok'
    }
    const interruption = Interruption.listen(() => {})
    try {
      const exit = await watchAction(api, action.id, { output, interruption, timeoutMs: options.timeout })
      const end = await api.get<ActionView>(`/v1/actions/${encodeURIComponent(action.id)}`)
      output.data(end, () => `${end.id}: ${end.state}, ${end.counts.succeeded} succeeded, ${end.counts.failed} failed`)
      return exit
    } finally {
      interruption.ignore()
    }
  })
}

async function upload(api: ApiClient, path: string, options: SubmitOptions): Promise<ActionView> {
  const { queue, tenant, type, level, keepResults, failFast, maxFailureRatio, seal } = options
  // Named here, so that a submit that breaks off can be repeated.
  const name = options.action ?? randomUUID()
  try {
    return await api.upload<ActionView>(queuePath(queue, 'actions'), inChunks(jobLines(path, options)), {
      query: { tenant, type, level, keepResults, failFast, maxFailureRatio, seal: seal ? undefined : false },
      headers: { 'idempotency-key': JSON.stringify(name) },
    })
  } catch (error) {
    if (error instanceof CliError && error.exit === 'unreachable') {
      throw new CliError('unreachable', `${error.message}; to go on, submit the same file with --action ${name}`, {
        cause: error,
      })
    }
    throw error
  }
}

/** Each job as a line of JSON, as the server takes it. */
async function* jobLines(path: string, { payloads }: SubmitOptions): AsyncGenerator<string> {
  for await (const { line, value } of readJsonLines(path)) {
    if (payloads) yield `${JSON.stringify({ payload: value })}\n`
    else if (typeof value === 'object' && value !== null && 'payload' in value) yield `${JSON.stringify(value)}\n`
    else {
      throw new CliError(
        'usage',
        `${nameOfInput(path)}:${line}: is no job such as {"payload":{…}}; if each line is the payload itself, add --payloads`,
      )
    }
  }
}

/** A write to the network for each line would cost more than the line. */
const CHUNK_CHARACTERS = 65_536

async function* inChunks(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let chunk = ''
  for await (const line of lines) {
    chunk += line
    if (chunk.length < CHUNK_CHARACTERS) continue
    yield encoder.encode(chunk)
    chunk = ''
  }
  if (chunk !== '') yield encoder.encode(chunk)
}
