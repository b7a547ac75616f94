import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { type CheckedPlan, checkPlan } from '../../simulate/plan.ts'
import { reportOf, type SimulationReport } from '../../simulate/report.ts'
import { Simulation } from '../../simulate/simulation.ts'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { sayDuration } from '../duration.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { wholeNumber } from '../option-values.ts'
import type { Output } from '../output.ts'
import { ProgressBars } from '../progress-bar.ts'
import { assertOtherFile } from '../same-file.ts'
import { chartOf } from '../simulate/chart.ts'
import { assertChartFile, writeChartFile } from '../simulate/chart-file.ts'
import { summarize } from '../simulate/summary.ts'
import { tablesOf } from '../simulate/tables.ts'

interface SimulateOptions {
  readonly chart?: string
  readonly seed?: number
  readonly top: number
  readonly yes?: true
}

/** As the plan: standard input. */
const STDIN = '-'
/**
 * Of a processor's time for each job, measured with a day of 1,000 tenants under limits of their own: 8 to 12 µs. Plans with
 * more tenants, or more hands that come one by one, take longer.
 */
const SECONDS_PER_JOB = 12e-6
const WORTH_TELLING_S = 30
const TOO_LONG_S = 600

export function simulateCommand(): Command {
  const command = newCommand('simulate <plan>', {
    summary: 'say what a plan of tenants, arrivals and limits would do, on virtual time',
    details:
      'Reads a plan in JSON (- for standard input) and runs it through the decisions of the real queue without a clock: waits, ' +
      'times to completion, fairness and the use of each limit, before anyone turns the real tap. No Redis is needed. The same ' +
      'plan says the same every time. The format: docs/guides/simulate.md.',
    examples: [
      'sluice simulate plan.json',
      'sluice simulate plan.json --chart plan.svg',
      "sluice simulate plan.json --json | jq '.floods[0].tookMs'",
    ],
  })
    .option(
      '--chart <file>',
      'also draw backlogs and the use of limits over time, as SVG or PNG by the name of the file',
    )
    .option('--seed <number>', 'instead of that of the plan', wholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }))
    .option('--top <rows>', 'so many tenants in the table at the most', wholeNumber({ min: 1, max: 10_000 }), 15)
    .option('--yes', 'also run a plan that takes longer than ten minutes')
  return onCall<SimulateOptions>(command, simulate)
}

async function simulate({ output, options, args }: Invocation<SimulateOptions>): Promise<ExitName> {
  const path = args[0] as string
  if (options.chart !== undefined) {
    await assertOtherFile('--chart', { input: path, output: options.chart })
    await assertChartFile(options.chart)
  }
  const read = await readPlan(path)
  const plan = { ...checkPlan(read), ...(options.seed === undefined ? {} : { seed: options.seed }) }
  warnOfLength(plan, output, options.yes === true)
  const interruption = Interruption.listen(() => output.talk('Stopping; nothing is kept of a simulation.'))
  try {
    const report = await runPlan(plan, output, interruption.signal)
    const summary = summarize(report)
    output.data({ schema: 'sluice.simulation/v1', summary, ...report }, () =>
      [...summary, '', tablesOf(report, options.top)].join('\n'),
    )
    // Last: a disk that is full by now takes nothing of what was worked out.
    if (options.chart !== undefined) {
      await writeChartFile(options.chart, chartOf(report))
      output.talk(`The chart is in ${options.chart}.`)
    }
    return 'ok'
  } catch (error) {
    if (interruption.exit === undefined) throw error
    return interruption.exit
  } finally {
    interruption.ignore()
  }
}

async function readPlan(path: string): Promise<unknown> {
  let text: string
  try {
    text = path === STDIN ? await textOf(process.stdin) : await readFile(path, 'utf8')
  } catch (error) {
    throw new CliError('usage', `${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('usage', `${path} is not JSON: ${(error as Error).message}`, { cause: error })
  }
}

async function textOf(stream: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function warnOfLength({ expectedJobs }: CheckedPlan, output: Output, isWanted: boolean): void {
  const seconds = expectedJobs * SECONDS_PER_JOB
  if (seconds < WORTH_TELLING_S) return
  const jobs = `${expectedJobs.toLocaleString('en')} jobs take about ${sayDuration(seconds * 1_000)} to simulate`
  if (seconds > TOO_LONG_S && !isWanted) {
    const instead = 'shorten its duration, divide jobs, rates and limits by ten, or give --yes'
    throw new CliError('usage', `the plan is large: ${jobs}; ${instead}`)
  }
  output.talk(`${jobs}.`)
}

async function runPlan(plan: CheckedPlan, output: Output, signal: AbortSignal): Promise<SimulationReport> {
  const bars = new ProgressBars(output)
  const record = await new Simulation(plan).run({
    signal,
    onProgress: ({ passedUs, ended }) => {
      const note = `${sayDuration(passedUs / 1000)} of virtual time`
      bars.update([{ label: 'jobs', done: ended, total: Math.max(plan.expectedJobs, ended), note }])
    },
  })
  bars.clear()
  return reportOf(record)
}
