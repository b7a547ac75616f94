import { afterEach, describe, expect, it } from 'vitest'
import { startCluster, type TestCluster } from '../support/cluster.ts'
import { expectAcceptedKept, resumed } from './failover.ts'
import { KEY, losesMaster, moveAround } from './resharding.ts'
import { busyOne, Scenario, type ScenarioOptions } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

async function start(options: ScenarioOptions = {}): Promise<TestCluster> {
  const cluster = await startCluster()
  scenario = await Scenario.start({ topology: cluster, upstream: true, queue: { leaseMs: 3_000 }, ...options })
  return cluster
}

describe('a Cluster', () => {
  it('whose slot moves from node to node loses no job, runs none twice and exceeds no limit', async () => {
    const cluster = await start({ queue: { leaseMs: 15_000, limits: { queue: '400/s' } } })
    const workers = await Promise.all([scenario.worker(), scenario.worker({ mode: 'claim' })])
    const streams = [scenario.stream(), scenario.stream({ ids: 'generated' })]
    await busyOne(workers, 100)

    // Not written down as a fault: it must excuse nothing.
    await moveAround(cluster, 4)
    const results = await Promise.all(streams.map((stream) => stream.finish()))

    expect(results.flatMap(({ unheard }) => unheard)).toEqual([])
    await scenario.expectPromisesKept({ limits: [{ permits: 400, windowMs: 1_000 }], livenessMs: 20_000 })
  })

  it('whose master is killed goes on with its replica, and has lost nothing accepted with durability', async () => {
    const cluster = await start({ durability: { replicas: 1 } })
    const workers = await Promise.all([scenario.worker(), scenario.worker()])
    const streams = [scenario.stream({ ordered: false }), scenario.stream({ ids: 'generated', ordered: false })]
    await busyOne(workers, 200)

    const { afterUs, at, fault, master } = await losesMaster(scenario, cluster)
    const resumedMs = await resumed(workers, afterUs, at)
    fault.end()
    await cluster.heal()
    await Promise.all(streams.map((stream) => stream.finish()))

    expect(resumedMs).toBeLessThan(10_000)
    expect(await cluster.masterOf(KEY)).not.toBe(master)
    await expectAcceptedKept(scenario)
  })
})
