import { choose, scenarioArguments, UsageError } from './arguments.ts'
import { allScenarios } from './catalogue.ts'
import { jsonLine, list, table } from './report.ts'
import { type Result, runScenario } from './run-scenario.ts'

const EXIT_FAILED = 1
const EXIT_USAGE = 2

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interruption.abort(new Error('it was interrupted')))
}

/** What goes to standard output, and the exit code. */
async function main(): Promise<{ lines: string[]; exitCode: number }> {
  const asked = scenarioArguments(process.argv.slice(2))
  const all = await allScenarios(asked.folder)
  if (asked.names[0] === 'list') {
    const listed = all.map(({ group, scenario: { name, description } }) => ({ group, name, description }))
    return { lines: asked.json ? [JSON.stringify({ scenarios: listed })] : list(all), exitCode: 0 }
  }
  const results: Result[] = []
  for (const listed of choose(all, asked)) {
    const { name } = listed.scenario
    const log = (line: string): void => console.error(`${name}: ${line}`)
    const result = await runScenario(listed, { full: asked.full, interruption: interruption.signal, log })
    log(result.pass ? `ok after ${result.seconds} s` : `FAILED after ${result.seconds} s`)
    results.push(result)
  }
  const hasFailed = results.some(({ pass }) => !pass)
  return { lines: asked.json ? [jsonLine(results)] : table(results), exitCode: hasFailed ? EXIT_FAILED : 0 }
}

const { lines, exitCode } = await main().catch((error: unknown) => {
  if (!(error instanceof UsageError)) throw error
  console.error(error.message)
  return { lines: [], exitCode: EXIT_USAGE }
})
// Not when nothing is left to do: a scenario that was given up may wait for ever.
process.stdout.write(lines.map((line) => `${line}\n`).join(''), () => process.exit(exitCode))
