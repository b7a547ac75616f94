import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkQueueOptions, declaredSettings } from '../../src/engine/queue-options.ts'
import { openRedis, type Redis } from '../../src/store/redis.ts'
import type { DeclaredSettings } from '../../src/store/settings.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { action, declared } from './actions.ts'
import failedBefore from './seeds.json' with { type: 'json' }
import { type Action, Step } from './steps.ts'
import { World } from './world.ts'

/** How long the random runs go on: what a pull request may take, or a night. */
const SECONDS = Number(process.env.SLUICE_MODEL_SECONDS ?? 40)
const LONGEST_RUN = Number(process.env.SLUICE_MODEL_COMMANDS ?? 100)
/** Where they start; fast-check's report of a failure names it. */
const SEED = process.env.SLUICE_MODEL_SEED
const CLIENTS = 3
/** Looking for the shortest failing run may take this much longer. */
const SHRINKING_SECONDS = 60

let server: TestRedis
let redis: Redis
let runs = 0
let steps = 0
/** The run under way: fast-check does not wait for it when the time is over. */
let current: Promise<void> = Promise.resolve()

beforeAll(async () => {
  // Redis keeps the order of a claim's jobs only while their hash is packed; the model compares the order.
  server = await startRedis({ config: { 'hash-max-listpack-value': 4096, 'hash-max-listpack-entries': 4096 } })
  redis = openRedis({ redis: { path: server.path } })
})

afterAll(async () => {
  await current.catch(() => {})
  await redis.close()
  await server.stop()
})

async function inWorld(settings: DeclaredSettings, run: (world: World) => Promise<void>): Promise<void> {
  runs += 1
  const client = server.client()
  const world = await World.create(`model-${runs}`, redis, client, settings, CLIENTS)
  try {
    await run(world)
    await world.audit()
  } finally {
    steps += world.steps
    await client.flushall()
    client.disconnect()
  }
}

const answersAsTheModel = fc.asyncProperty(
  declared,
  fc.commands([action.map((each) => new Step(each))], { size: 'max', maxCommands: LONGEST_RUN }),
  (settings, commands) => {
    current = inWorld(settings, (world) => fc.asyncModelRun(() => ({ model: world, real: world }), commands))
    return current
  },
)

interface Check {
  readonly numRuns: number
  readonly seed?: number
  readonly path?: string
  readonly interruptAfterTimeLimit?: number
}

/** Fails with the seed, the path and the shortest failing run that was found. Its steps belong into seeds.json. */
async function check(parameters: Check): Promise<void> {
  const result = await fc.check(answersAsTheModel, parameters)
  if (result.failed) {
    throw new Error(fc.defaultReportMessage(result as never) ?? 'failed', { cause: result.errorInstance })
  }
}

/** Settings of the runs in seeds.json: everything at its default, a turn of four, no limits. */
const plain: DeclaredSettings = declaredSettings(checkQueueOptions('q', {}))

it.each(failedBefore as readonly { why: string; actions: readonly Action[] }[])('$why', async ({ actions }) => {
  await inWorld(plain, async (world) => {
    for (const each of actions) await new Step(each).run(world)
  })
})

it('answers as the reference model does, whatever happens', {
  timeout: (SECONDS + SHRINKING_SECONDS) * 1000,
}, async () => {
  await check({
    numRuns: 10_000_000,
    interruptAfterTimeLimit: SECONDS * 1000,
    ...(SEED === undefined ? {} : { seed: Number(SEED) }),
  })

  expect(steps).toBeGreaterThan(10 * SECONDS)
})
