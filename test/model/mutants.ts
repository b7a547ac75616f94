/**
 * How much the reference model sees: breaks the built Lua in one line at a time and reports which of the broken queues
 * still answer as the model does. Not part of `npm test`: `npx tsx test/model/mutants.ts [parts of names]`.
 */
import { breakScripts, withoutLine } from './broken-scripts.ts'
import { luaMutants } from './lua-mutants.ts'
import { RandomRuns } from './random-runs.ts'
import failedBefore from './seeds.json' with { type: 'json' }
import type { Action } from './steps.ts'

const SECONDS = Number(process.env.SLUICE_MUTANT_SECONDS ?? 30)
const LONGEST_RUN = 100
const SEED = 1

/** How the suite noticed; undefined when it did not. */
async function caught(): Promise<string | undefined> {
  const runs = await RandomRuns.start()
  try {
    for (const { why, actions } of failedBefore as readonly { why: string; actions: readonly Action[] }[]) {
      try {
        await runs.replay(actions)
      } catch {
        return `by the run “${why}”`
      }
    }
    try {
      await runs.check({ seconds: SECONDS, longestRun: LONGEST_RUN, seed: SEED, shrinks: false })
    } catch {
      return `after ${runs.steps} random steps`
    }
    return undefined
  } finally {
    await runs.stop()
  }
}

const gone = withoutLine(luaMutants).map(({ what, line }) => `- ${what}: ${line}`)
if (gone.length > 0)
  throw new Error(`lines to change are no longer in the Lua; see lua-mutants.ts:\n${gone.join('\n')}`)
const wanted = process.argv.slice(2)
const chosen = luaMutants.filter(({ what }) => wanted.length === 0 || wanted.some((part) => what.includes(part)))
if (chosen.length === 0) throw new Error(`no mutant is named like ${wanted.join(' or ')}; see lua-mutants.ts`)
if ((await caught()) !== undefined) throw new Error('the queue and its model differ before anything is broken')
let survivors = 0
for (const mutant of chosen) {
  const startedAt = performance.now()
  breakScripts(mutant)
  const how = await caught()
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  if (how === undefined) survivors += 1
  process.stdout.write(`${mutant.what}: ${how ? `caught ${how}` : 'SURVIVED'} (${seconds} s)\n`)
}
process.stdout.write(`${chosen.length - survivors} of ${chosen.length} caught, within ${SECONDS} s each\n`)
process.exitCode = survivors > 0 ? 1 : 0
