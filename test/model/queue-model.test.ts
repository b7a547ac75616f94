import { afterAll, beforeAll, expect, it } from 'vitest'
import { RandomRuns } from './random-runs.ts'
import failedBefore from './seeds.json' with { type: 'json' }
import type { Action } from './steps.ts'

/** How long the random runs go on: what a pull request may take, or a night. */
const SECONDS = Number(process.env.SLUICE_MODEL_SECONDS ?? 30)
const LONGEST_RUN = Number(process.env.SLUICE_MODEL_COMMANDS ?? 100)
/** Where they start; fast-check's report of a failure names it. */
const SEED = process.env.SLUICE_MODEL_SEED
/** Looking for the shortest failing run may take this much longer. */
const SHRINKING_SECONDS = 60

let runs: RandomRuns

beforeAll(async () => {
  runs = await RandomRuns.start()
})

afterAll(() => runs.stop())

it.each(failedBefore as readonly { why: string; actions: readonly Action[] }[])('$why', async ({ actions }) => {
  await runs.replay(actions)
})

it('answers as the reference model does, whatever happens', {
  timeout: (SECONDS + SHRINKING_SECONDS) * 1000,
}, async () => {
  const seed = SEED === undefined ? undefined : Number(SEED)

  await runs.check({ seconds: SECONDS, longestRun: LONGEST_RUN, seed })

  expect(runs.steps).toBeGreaterThan(10 * SECONDS)
})
