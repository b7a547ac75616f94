import type { TestRedis } from '../../src/testing/redis-server.ts'
import { resumed } from '../../test/failure/failover.ts'
import { losesMaster, moveAround } from '../../test/failure/resharding.ts'
import { Trial } from '../../test/failure/trial.ts'
import { busyOne } from '../../test/failure/worker.ts'
import { describeViolations } from '../../test/support/checker.ts'
import { startCluster, type TestCluster } from '../../test/support/cluster.ts'
import { judge } from '../judge.ts'
import type { Scenario } from '../scenario.ts'

const PERMITS = 100
const TENANTS = Array.from({ length: 12 }, (_, number) => `tenant-${number}`)
const MOST_RUNNING = 30
const PACE = { betweenKeysMs: 1, betweenMovesMs: 4_000 }
// Before the kill, and again after it.
const FEWEST_MOVES = 2

export const scenario: Scenario = {
  name: 'cluster-resharding',
  description:
    'a Cluster of three whose slot moves all the time and whose master is killed: nothing lost, no limit broken',
  timeLimitMs: { short: 240_000, full: 2_400_000 },

  async run({ full, log, onEnd, signal }) {
    const wanted = full ? 500_000 : 8_000
    const cluster = await startCluster()
    onEnd(() => cluster.stop())
    const limits = { tenant: `${PERMITS}/s`, queue: { running: { kind: 'concurrency', max: MOST_RUNNING } } } as const
    const trial = await Trial.start({
      topology: cluster,
      upstream: true,
      durability: { replicas: 1 },
      queue: { limits, maxPending: 3_000 },
    })
    onEnd(() => trial.stop())
    // A call for each claim and each end of a job, so that as many as possible meet a slot on its way.
    const workers = await Promise.all(Array.from({ length: 4 }, () => trial.worker({ mode: 'claim', concurrency: 4 })))
    const settings = { tenants: TENANTS, chunk: 5, everyMs: 2, holdMs: 1, mixed: false }
    // Given ids are kept for a day, in keys that move with the slot: were all jobs to have one, it would be on its way
    // for most of the time after a while, and few calls would get through.
    const streams = [
      trial.stream({ ...settings, everyMs: 20 }),
      trial.stream({ ...settings, ids: 'generated' }),
      trial.stream({ ...settings, ids: 'generated' }),
    ]
    await busyOne(workers, 50)

    const operations = new Operations(cluster)
    const moveUntil = async (count: number): Promise<number> => {
      let moves = 0
      for (; moves < FEWEST_MOVES || (await operations.count()) < count; moves++) {
        await moveAround(cluster, 1, PACE)
        signal.throwIfAborted()
      }
      return moves
    }
    const before = await moveUntil(wanted / 2)
    log(`${await operations.count()} operations during ${before} moves; now the master is killed`)
    await operations.keep()
    const { afterUs, at, fault } = await losesMaster(trial, cluster)
    const resumedMs = await resumed(workers, afterUs, at)
    fault.end()
    log(`work went on after ${Math.round(resumedMs)} ms`)
    await cluster.heal()
    const after = await moveUntil(wanted)
    const count = await operations.count()

    const results = await Promise.all(streams.map((stream) => stream.finish()))
    const { violations } = await trial.check({
      forgetsMs: 1_000,
      livenessMs: 60_000,
      limits: TENANTS.map((tenant) => ({ tenant, permits: PERMITS, windowMs: 1_000 })),
      concurrency: [{ max: MOST_RUNNING }],
    })
    if (violations.length > 0) log(describeViolations(violations))
    const figures = {
      operations: count,
      moves: before + after,
      accepted: results.reduce((sum, { accepted }) => sum + accepted, 0),
      killResumedMs: Math.round(resumedMs),
      lost: violations.filter(({ check }) => check === 'C1').length,
      broken: violations.filter(({ check }) => check !== 'C1').length,
    }
    return judge(figures, {
      operations: { atLeast: wanted },
      moves: { atLeast: 4 },
      lost: { atMost: 0 },
      broken: { atMost: 0 },
      killResumedMs: { atMost: 10_000 },
    })
  },
}

/** Scripts that ran on the nodes. What a node has counted is gone when it is killed. */
class Operations {
  readonly #nodes: readonly ReturnType<TestRedis['client']>[]
  #kept = 0

  constructor(cluster: TestCluster) {
    this.#nodes = cluster.nodes.map((node) => node.client())
  }

  async count(): Promise<number> {
    return this.#kept + (await this.#now())
  }

  /** Remembers what has been counted, and starts over. */
  async keep(): Promise<void> {
    this.#kept += await this.#now()
    await Promise.all(this.#nodes.map((node) => node.config('RESETSTAT')))
  }

  async #now(): Promise<number> {
    const counts = await Promise.all(
      this.#nodes.map(async (node) => {
        const stats = await node.info('commandstats')
        return Number(/^cmdstat_fcall:calls=(\d+)/m.exec(stats)?.[1] ?? 0)
      }),
    )
    return counts.reduce((sum, calls) => sum + calls, 0)
  }
}
