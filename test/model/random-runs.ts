import fc from 'fast-check'
import { checkQueueOptions, declaredSettings } from '../../src/engine/queue-options.ts'
import { openRedis, type Redis } from '../../src/store/redis.ts'
import type { DeclaredSettings } from '../../src/store/settings.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { action, declared } from './actions.ts'
import { focusAction, focuses, focusSettings } from './focus.ts'
import { type Action, Step } from './steps.ts'
import { World } from './world.ts'

const CLIENTS = 3

/** Settings of the runs in seeds.json: everything at its default, a turn of four, no limits. */
const plain: DeclaredSettings = declaredSettings(checkQueueOptions('q', {}))

interface CheckOptions {
  readonly seconds: number
  readonly longestRun: number
  readonly seed?: number | undefined
  /** Whether the shortest failing run is looked for. @default true */
  readonly shrinks?: boolean
}

/** Runs of the queue beside its reference model, on a server of their own. */
export class RandomRuns {
  /** Made so far, over all runs. */
  steps = 0
  readonly #server: TestRedis
  readonly #redis: Redis
  #runs = 0
  /** The run under way: fast-check does not wait for it when the time is over. */
  #current: Promise<void> = Promise.resolve()

  private constructor(server: TestRedis) {
    this.#server = server
    this.#redis = openRedis({ redis: { path: server.path } })
  }

  static async start(): Promise<RandomRuns> {
    // Real records are so long that Redis keeps no order of a hash; those of the runs are shorter.
    return new RandomRuns(await startRedis({ config: { 'hash-max-listpack-value': 8 } }))
  }

  async stop(): Promise<void> {
    await this.#current.catch(() => {})
    await this.#redis.close()
    await this.#server.stop()
  }

  /** Fails with the seed, the path and the shortest failing run that was found. Its steps belong into seeds.json. */
  async check({ seconds, longestRun, seed, shrinks = true }: CheckOptions): Promise<void> {
    const runs = fc.constantFrom(...focuses).chain((focus) => {
      const step = action.map((each) => new Step(focusAction(focus, each)))
      const settings = declared.map((each) => focusSettings(focus, each))
      return fc.tuple(settings, fc.commands([step], { size: 'max', maxCommands: longestRun }))
    })
    const answersAsTheModel = fc.asyncProperty(runs, ([settings, steps]) => {
      this.#current = this.#inWorld(settings, (world) => fc.asyncModelRun(() => ({ model: world, real: world }), steps))
      return this.#current
    })
    const result = await fc.check(answersAsTheModel, {
      numRuns: 10_000_000,
      interruptAfterTimeLimit: seconds * 1000,
      endOnFailure: !shrinks,
      ...(seed === undefined ? {} : { seed }),
    })
    if (!result.failed) return
    throw new Error(fc.defaultReportMessage(result as never) ?? 'failed', { cause: result.errorInstance })
  }

  /** One run again that failed before. */
  async replay(actions: readonly Action[]): Promise<void> {
    await this.#inWorld(plain, async (world) => {
      for (const each of actions) await new Step(each).run(world)
    })
  }

  async #inWorld(settings: DeclaredSettings, run: (world: World) => Promise<void>): Promise<void> {
    this.#runs += 1
    const client = this.#server.client()
    const world = await World.create(`model-${this.#runs}`, this.#redis, client, settings, CLIENTS)
    try {
      await run(world)
      await world.audit()
    } finally {
      this.steps += world.steps
      await client.flushall()
      client.disconnect()
    }
  }
}
