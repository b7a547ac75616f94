import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { duration } from '../option-values.ts'
import type { Output } from '../output.ts'
import { type QueueSource, type SourceOptions, useSource, withSource } from '../queue-source.ts'
import { type Frame, frameOf } from '../top/frame.ts'
import { wholeFrame } from '../top/layout.ts'
import { type Paint, paintLine } from '../top/line.ts'
import { LiveView, TENANTS } from '../top/live-view.ts'
import { firstState, type Sort, sorts } from '../top/state.ts'

interface TopOptions extends SourceOptions {
  readonly queue?: string
  readonly interval?: number
  readonly sort: Sort
  readonly filter?: string
  readonly once?: true
}

const DEFAULT_INTERVAL_MS = 2_000
const SHORTEST_INTERVAL_MS = 100
/** Of a frame that no terminal gives a width. */
const COLUMNS_UNKNOWN = 120

export function topCommand(): Command {
  const command = newCommand('top', {
    summary: 'a live view of a queue in the terminal: tenants, limits, workers, rates',
    details:
      'Keys sort and filter the tenants, say why one waits, pause it; ? lists them. Where standard output is no terminal it is ' +
      'one frame as text. With --json it is one document for each queue; with --interval as well, such documents again and again.',
    examples: [
      'sluice top --queue promotions',
      'sluice top --once --sort wait',
      'sluice top --json --queue promotions | jq .counts.waiting',
      'sluice top --json --interval 1s | head -n 2',
    ],
  })
    .addOption(new Option('-q, --queue <name>', 'only this queue; all of them unless given').env('SLUICE_QUEUE'))
    .option('--interval <time>', 'how often it looks: 500ms, 5s (default: 2s)', duration)
    .addOption(new Option('--sort <by>', 'the order of the tenants').choices([...sorts]).default('backlog'))
    .option('--filter <text>', 'only tenants whose name holds this')
    .option('--once', 'print one frame as text, and end')
  return onCall<TopOptions>(withSource(command), top)
}

async function top({ output, options }: Invocation<TopOptions>): Promise<ExitName> {
  const { queue, interval, once } = options
  if (interval !== undefined && interval < SHORTEST_INTERVAL_MS) {
    throw new CliError('usage', `--interval must be ${SHORTEST_INTERVAL_MS}ms or longer`)
  }
  if (interval !== undefined && once) throw new CliError('usage', '--once looks once, and has no use for --interval')
  const named = queue === undefined ? [] : [queue]
  return useSource(options, named, async (source) => {
    const [first, ...others] = named.length > 0 ? named : await source.queues()
    if (first === undefined) throw new CliError('notFound', `${source.name} has no queue that this key may see`)
    const queues: [string, ...string[]] = [first, ...others]
    if (output.isJson)
      return interval === undefined ? documents(source, queues, output) : stream(source, queues, interval, output)
    if (once || !canDraw(process.stdout, process.env)) return texts(source, queues, { output, options })
    return live(source, queues, { output, options })
  })
}

function canDraw(stream: { isTTY?: boolean }, { TERM }: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && TERM !== 'dumb'
}

function readAll(
  source: QueueSource,
  queues: readonly string[],
  before?: ReadonlyMap<string, Frame>,
): Promise<Frame[]> {
  return Promise.all(
    queues.map(async (queue) => frameOf(await source.overview(queue, { tenants: TENANTS }), before?.get(queue))),
  )
}

async function documents(source: QueueSource, queues: readonly string[], output: Output): Promise<ExitName> {
  for (const frame of await readAll(source, queues)) output.json(frame)
  return 'ok'
}

/** Lines of JSON until somebody ends it. */
async function stream(
  source: QueueSource,
  queues: readonly string[],
  intervalMs: number,
  output: Output,
): Promise<ExitName> {
  const interruption = Interruption.listen(() => {})
  let before: Map<string, Frame> | undefined
  try {
    while (interruption.exit === undefined) {
      const frames = await readAll(source, queues, before)
      for (const frame of frames) output.json(frame)
      before = new Map(frames.map((frame) => [frame.name, frame]))
      await sleep(intervalMs, undefined, { signal: interruption.signal }).catch(() => {})
    }
  } finally {
    interruption.ignore()
  }
  return interruption.exit
}

async function texts(
  source: QueueSource,
  queues: readonly string[],
  { output, options }: Pick<Invocation<TopOptions>, 'output' | 'options'>,
): Promise<ExitName> {
  const columns = process.stdout.isTTY ? process.stdout.columns : COLUMNS_UNKNOWN
  const state = { ...firstState, sort: options.sort, filter: options.filter ?? '' }
  const frames = await readAll(source, queues)
  const pages = frames.map((frame) =>
    wholeFrame(frame, state)
      .map((line) => paintLine(line, columns, (style, text) => output.style(style, text)))
      .join('\n'),
  )
  output.text(pages.join('\n\n'))
  return 'ok'
}

async function live(
  source: QueueSource,
  queues: readonly [string, ...string[]],
  { output, options }: Pick<Invocation<TopOptions>, 'output' | 'options'>,
): Promise<ExitName> {
  const interruption = Interruption.listen(() => {})
  try {
    const view = new LiveView({
      source,
      queues,
      state: { sort: options.sort, filter: options.filter ?? '' },
      intervalMs: options.interval ?? DEFAULT_INTERVAL_MS,
      output: process.stdout,
      input: process.stdin,
      paint: paintOn(output),
      interruption,
    })
    return await view.run()
  } finally {
    interruption.ignore()
  }
}

/** Which tenant is chosen must be seen without colours, too: reversed is no colour. */
function paintOn(output: Output): Paint {
  return (style, text) => (style === 'inverse' ? `\x1b[7m${text}\x1b[27m` : output.style(style, text))
}
