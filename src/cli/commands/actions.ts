import { once } from 'node:events'
import { type Command, Option } from 'commander'
import type { ActionSummary, ActionView } from '../../index.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { sayDuration } from '../duration.ts'
import { Interruption } from '../interruption.ts'
import { inChunks, readJobLines } from '../job-lines.ts'
import { duration, wholeNumber } from '../option-values.ts'
import { type Output, table } from '../output.ts'
import {
  actionPath,
  type QueueServerOptions,
  queuePath,
  type ServerOptions,
  useApi,
  withQueue,
  withServer,
} from '../server-options.ts'
import { watchAction } from '../watch-action.ts'

export function actionsCommand(): Command {
  const group = newCommand('actions', {
    summary: 'look at bulk actions, add to them, seal, cancel and retry them, get their results',
    examples: ['sluice actions ls --queue promotions', 'sluice actions watch promotions:acme:summer-sale'],
  })
  for (const command of [list(), get(), watch(), add(), seal(), cancel(), retry(), results()]) group.addCommand(command)
  return group
}

interface ListOptions extends QueueServerOptions {
  readonly tenant?: string
  readonly limit: number
  readonly cursor?: string
}

function list(): Command {
  const command = newCommand('ls', {
    summary: 'the actions of a queue, newest first',
    examples: ['sluice actions ls --queue promotions --tenant acme', 'sluice actions ls --json | jq -r .id'],
  })
    .option('-t, --tenant <name>', 'only those of this tenant')
    .option('--limit <actions>', 'at most so many', wholeNumber({ min: 1, max: 500 }), 50)
    .option('--cursor <cursor>', 'go on where an earlier list ended')
  return onCall<ListOptions>(withQueue(command), async ({ output, options }) => {
    const { queue, tenant, limit, cursor } = options
    const page = await useApi(options, (api) =>
      api.get<{ actions: ActionView[]; cursor?: string }>(queuePath(queue, 'actions'), { tenant, limit, cursor }),
    )
    if (output.isJson) for (const action of page.actions) output.json(action)
    else if (page.actions.length === 0) output.talk(`No actions in queue "${queue}".`)
    else output.text(table(['id', 'state', 'total', 'done', 'failed', 'rate', 'left'], page.actions.map(rowOf)))
    if (page.cursor !== undefined) output.talk(`There are more: --cursor ${page.cursor}`)
    return 'ok'
  })
}

function rowOf({ id, state, counts, perSecond, etaMs }: ActionView) {
  const done = counts.succeeded + counts.failed + counts.canceled
  const left = etaMs === undefined ? undefined : sayDuration(etaMs)
  return [id, state, counts.total, done, counts.failed, Math.round(perSecond), left]
}

function get(): Command {
  const command = newCommand('get <id>', {
    summary: 'one action: its state and counts, and its summary when it has ended',
    examples: ['sluice actions get promotions:acme:summer-sale'],
  })
  return onCall<ServerOptions>(withServer(command), async ({ output, options, args }) => {
    const id = args[0] as string
    await useApi(options, async (api) => {
      const action = await api.get<ActionView>(actionPath(id))
      // While it runs, the counts say all there is.
      if (action.endedAt === undefined) show(output, action)
      else show(output, { ...action, ...summaryFields(await api.get<ActionSummary>(actionPath(id, 'summary'))) })
    })
    return 'ok'
  })
}

function summaryFields({ durationMs, attempts, throttles, errors, aggregate }: ActionSummary) {
  return { durationMs, attempts, throttles, errors, aggregate }
}

function show(output: Output, action: ActionView): void {
  const { counts, ...rest } = action
  output.data(action, () =>
    Object.entries({ ...rest, ...counts })
      .map(fieldLine)
      .join('\n'),
  )
}

function fieldLine([name, value]: [string, unknown]): string {
  const isTime = name.endsWith('At') && typeof value === 'number'
  const shown = isTime
    ? new Date(value).toISOString()
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value)
  return `${name.padEnd(16)} ${shown}`
}

interface WatchOptions extends ServerOptions {
  readonly timeout?: number
}

function watch(): Command {
  const command = newCommand('watch <id>', {
    summary: 'follow an action until it ends',
    details: 'The exit code is 5 if jobs failed, 6 if it was cancelled, 7 if it did not end in time.',
    examples: ['sluice actions watch promotions:acme:summer-sale --timeout 10min'],
  }).option('--timeout <time>', 'give up after this', duration)
  return onCall<WatchOptions>(withServer(command), async ({ output, options, args }) => {
    const interruption = Interruption.listen(() => {})
    try {
      return await useApi(options, (api) =>
        watchAction(api, args[0] as string, {
          output,
          interruption,
          timeoutMs: options.timeout,
          ...(output.isJson ? { onProgress: (progress) => output.json(progress) } : {}),
        }),
      )
    } finally {
      interruption.ignore()
    }
  })
}

interface AddOptions extends ServerOptions {
  readonly payloads?: true
}

function add(): Command {
  const command = newCommand('add <id> [file]', {
    summary: 'add jobs of a file, or of standard input, to an action that is open',
    examples: ['sluice actions add promotions:acme:summer-sale more.ndjson'],
  }).option('--payloads', 'each line is the payload of a job')
  return onCall<AddOptions>(withServer(command), async ({ output, options, args }) => {
    const [id = '', path = '-'] = args
    const lines = readJobLines(path, { isPayload: options.payloads === true })
    const action = await useApi(options, (api) =>
      api.upload<ActionView & { accepted: number }>(actionPath(id, 'jobs'), inChunks(lines)),
    )
    output.data(action, () => `${action.id}: ${action.accepted} jobs more, ${action.counts.total} in all`)
    return 'ok'
  })
}

/** A command that changes an action and shows how it stands then. */
function change(verb: string, texts: { summary: string; path: string; id: string }): Command {
  const command = newCommand(`${verb} <id>`, {
    summary: texts.summary,
    examples: [`sluice actions ${verb} ${texts.id}`],
  })
  return onCall<ServerOptions>(withServer(command), async ({ output, options, args }) => {
    const action = await useApi(options, (api) => api.post<ActionView>(actionPath(args[0] as string, texts.path)))
    show(output, action)
    return 'ok'
  })
}

function seal(): Command {
  return change('seal', {
    summary: 'no more jobs come: it can complete',
    path: 'seal',
    id: 'promotions:acme:summer-sale',
  })
}

function cancel(): Command {
  return change('cancel', {
    summary: 'none of its jobs start any more; running ones get their signal',
    path: 'cancel',
    id: 'promotions:acme:summer-sale',
  })
}

function retry(): Command {
  return change('retry', {
    summary: 'its failed jobs once more, as a new action',
    path: 'retry-failed',
    id: 'promotions:acme:summer-sale',
  })
}

interface ResultsOptions extends ServerOptions {
  readonly order: string
}

function results(): Command {
  const command = newCommand('results <id>', {
    summary: 'the results of its jobs as JSON lines on standard output, if they were kept',
    examples: ['sluice actions results promotions:acme:summer-sale > results.ndjson'],
  }).addOption(
    new Option('--order <order>', 'as submitted, or as they ended').choices(['job', 'finish']).default('job'),
  )
  return onCall<ResultsOptions>(withServer(command), copyResults)
}

async function copyResults({ options, args }: Invocation<ResultsOptions>): Promise<'ok'> {
  const { order } = options
  await useApi(options, async (api) => {
    for await (const chunk of api.download(actionPath(args[0] as string, 'results'), { order })) {
      if (!process.stdout.write(chunk)) await once(process.stdout, 'drain')
    }
  })
  return 'ok'
}
