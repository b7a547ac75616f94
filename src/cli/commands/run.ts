import { dirname, extname, join } from 'node:path'
import type { Command } from 'commander'
import { ensureEmbeddedServer } from '../../store/embedded.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { sayDuration } from '../duration.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { commaList, duration, rate, wholeNumber } from '../option-values.ts'
import type { Output } from '../output.ts'
import { inspectCalls } from '../run/calls-file.ts'
import { allowedPrivate } from '../run/private-hosts.ts'
import { writeLines } from '../run/results-file.ts'
import type { RunEnd } from '../run/run-calls.ts'
import { assertOtherFile } from '../same-file.ts'
import { assertWritable } from '../written-file.ts'

interface RunOptions {
  readonly rate: string
  readonly concurrency: number
  readonly out?: string
  readonly data?: string
  readonly allowPrivate?: true | readonly string[]
  readonly timeout: number
  readonly retries: number
  readonly again?: true
}

/** As `--out`: standard output. */
const STDOUT = '-'

export function runCommand(): Command {
  const command = newCommand('run <file>', {
    summary: 'perform a file of HTTP calls under a limit',
    details:
      'Each line of the file is a call: {"method":"POST","url":"https://…","headers":{…},"body":{…},"expect":[200],"id":"…"}; ' +
      'only url is needed. After Ctrl-C or a crash the same command goes on: what is finished is not performed again, ' +
      'only what was in flight may be. The exit code is 5 if calls failed.',
    examples: [
      'sluice run calls.ndjson --rate 100/s --concurrency 20 --out results.ndjson',
      'sluice run calls.ndjson --rate 5000/h && jq -r .result.status calls.results.ndjson',
    ],
  })
    .requiredOption('--rate <rate>', 'calls in any such time: 100/s, 30/min, 5000/h', rate)
    .option('--concurrency <calls>', 'calls in flight at once', wholeNumber({ min: 1, max: 10_000 }), 20)
    .option(
      '--out <file>',
      'where the results go, in the order of the calls; - for standard output (default: beside the file, as .results.ndjson)',
    )
    .option('--data <folder>', 'the folder of the store (default: .sluice beside the file)')
    .option('--timeout <time>', 'how long a call may take', duration, 20_000)
    .option('--retries <times>', 'how often a call that fails is tried again', wholeNumber({ min: 0, max: 1_000 }), 3)
    .option('--allow-private [ranges]', 'let calls go to private addresses: all, or these (10.0.0.0/8,…)', commaList)
    .option('--again', 'perform a file that has been performed once more')
  return onCall<RunOptions>(command, run)
}

async function run({ output, options, args }: Invocation<RunOptions>): Promise<ExitName> {
  const path = args[0] as string
  const out = options.out ?? `${path.slice(0, path.length - extname(path).length)}.results.ndjson`
  if (out !== STDOUT) await assertOtherFile('--out', { input: path, output: out })
  const file = await inspectCalls(path)
  if (out !== STDOUT) await assertWritable(out)
  const settings = {
    rate: options.rate,
    concurrency: options.concurrency,
    dataDir: options.data ?? join(dirname(path), '.sluice'),
    allowPrivate: allowedPrivate(file.hosts, options.allowPrivate),
    timeoutMs: options.timeout,
    maxRetries: options.retries,
    again: options.again === true,
  }
  const interruption = Interruption.listen(() =>
    output.talk('Finishing the calls in flight; Ctrl-C again ends at once.'),
  )
  const startedAt = performance.now()
  // It starts while what talks to it is loaded. Whether it could is told to whoever connects.
  ensureEmbeddedServer({ dataDir: settings.dataDir }).catch(() => {})
  const { performCalls } = await import('../run/run-calls.ts')
  try {
    return await performCalls(file, settings, { output, signal: interruption.signal }, async (end) => {
      const exit = interruption.exit ?? exitOf(end)
      if (end.summary !== undefined) await writeResults(output, out, end)
      tell({ output, end, exit, out, count: file.count, seconds: (performance.now() - startedAt) / 1_000 })
      return exit
    })
  } finally {
    interruption.ignore()
  }
}

async function writeResults(output: Output, out: string, { action }: RunEnd): Promise<void> {
  // As the store has them: nobody here looks inside.
  if (out !== STDOUT) await writeLines(out, action.resultLines({ order: 'job' }))
  else for await (const result of action.results({ order: 'job' })) output.json(result)
}

function exitOf({ view }: RunEnd): ExitName {
  if (view.state === 'CANCELED') return 'canceled'
  return view.counts.failed > 0 || view.state === 'FAILED' ? 'failedJobs' : 'ok'
}

function tell(run: { output: Output; end: RunEnd; exit: ExitName; out: string; seconds: number; count: number }): void {
  const { output, end, exit, out, seconds, count } = run
  const { succeeded, failed } = end.view.counts
  const { doneBefore, summary } = end
  const data = { action: end.action.id, state: end.view.state, calls: count, succeeded, failed, doneBefore, seconds }
  if (summary === undefined) {
    output.talk(`${succeeded + failed} of ${count} calls are done; the same command goes on with the rest.`)
    if (output.isJson) output.json(data)
    return
  }
  for (const error of summary.errors) output.talk(`${error.count} × ${error.message.split('\n')[0]}`)
  if (doneBefore === count)
    output.talk('They had all been performed before, and were not performed again: see --again.')
  const words = `${succeeded} of ${count} calls succeeded, ${failed} failed, in ${sayDuration(seconds * 1_000)}`
  const colour = exit === 'ok' ? 'green' : 'yellow'
  // Standard output is taken by the results then.
  if (out === STDOUT) output.talk(output.style(colour, words, 'talk'))
  else output.data({ ...data, out }, () => `${output.style(colour, words)}; results are in ${out}`)
}
