import type { Command } from 'commander'
import { startUpstream } from '../../testing/upstream.ts'
import { CliError } from '../cli-error.ts'
import { type Invocation, newCommand, onCall } from '../command.ts'
import { demoPlan } from '../demo/demo-plan.ts'
import { figuresOf, reportText } from '../demo/demo-report.ts'
import type { ExitName } from '../exit-codes.ts'
import { Interruption } from '../interruption.ts'
import { listenError } from '../listen-error.ts'
import { wholeNumber } from '../option-values.ts'

interface DemoOptions {
  readonly limit?: number
  readonly onlyUpstream?: true
  readonly port?: number
}

const DEFAULT_LIMIT = 500

export function demoCommand(): Command {
  const command = newCommand('demo', {
    summary: 'show the main job on this machine, in under a minute',
    details:
      'A local upstream enforces a limit and counts violations; a huge tenant and two small ones send calls through it. ' +
      'Ends with a report of what the upstream and the queue saw. The exit code is 1 if a call was too many or a job is lost.',
    examples: ['sluice demo', 'sluice demo --json | tail -n 1', 'sluice demo --only-upstream --port 7720 --limit 500'],
  })
    .option('--only-upstream', 'start only the upstream, to aim calls of your own at, until Ctrl-C')
    .option(
      '--limit <calls>',
      `of that upstream: calls in any second (default: ${DEFAULT_LIMIT})`,
      wholeNumber({ min: 1, max: 1_000_000 }),
    )
    .option('--port <port>', 'of that upstream; a free one unless given', wholeNumber({ min: 0, max: 65_535 }))
  return onCall<DemoOptions>(command, demo)
}

async function demo(invocation: Invocation<DemoOptions>): Promise<ExitName> {
  const { onlyUpstream, limit, port } = invocation.options
  if (onlyUpstream) return serveUpstream(invocation)
  if (limit !== undefined) throw new CliError('usage', '--limit needs --only-upstream: the demo has a plan of its own')
  if (port !== undefined) throw new CliError('usage', '--port needs --only-upstream: the demo takes a free one')
  return showMainJob(invocation)
}

async function showMainJob({ output }: Invocation<DemoOptions>): Promise<ExitName> {
  const { limit, windowMs, tenants } = demoPlan
  const interruption = Interruption.listen(() => output.talk('Stopping; once more to end at once.'))
  output.talk(`An upstream on this machine takes ${limit} calls in any ${windowMs / 1_000} s and counts those that are`)
  output.talk(`too many. ${tenants.length} tenants send calls through it: a huge one, and small ones that come later.`)
  const { performDemo } = await import('../demo/demo-run.ts')
  try {
    const figures = figuresOf(await performDemo(output, interruption.signal))
    output.data(figures, () => `\n${reportText(figures)}`)
    return figures.violations === 0 && figures.lost === 0 ? 'ok' : 'unexpected'
  } catch (error) {
    if (interruption.exit === undefined) throw error
    return interruption.exit
  } finally {
    interruption.ignore()
  }
}

/** For `sluice run` and whatever else calls an API: says what arrived when it is asked to end. */
async function serveUpstream({ output, options }: Invocation<DemoOptions>): Promise<ExitName> {
  const { limit = DEFAULT_LIMIT, port = 0 } = options
  const interruption = Interruption.listen(() => {})
  const upstream = await startUpstream({ limit, latencyMs: 20, port }).catch((error: unknown) => {
    throw listenError(error, { host: '127.0.0.1', port })
  })
  output.talk(`An upstream that takes ${limit} calls in any second: ${upstream.url}`)
  output.talk(`What it saw: ${upstream.url}/-/report. Ctrl-C ends it.`)
  await interruption.asked()
  const report = await upstream.report()
  await upstream.stop()
  interruption.ignore()
  output.data(
    report,
    () => `${report.calls} calls, ${report.violations} too many, ${report.busiest} in the busiest second`,
  )
  return 'ok'
}
