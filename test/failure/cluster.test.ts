import { afterEach, describe, expect, it } from 'vitest'
import { startCluster, type TestCluster } from '../support/cluster.ts'
import { expectAcceptedKept, resumed } from './failover.ts'
import { KEY, losesMaster, moveAround } from './resharding.ts'
import { Trial, type TrialOptions } from './trial.ts'
import { busyOne } from './worker.ts'

let trial: Trial
afterEach(() => trial.stop())

async function start(options: TrialOptions = {}): Promise<TestCluster> {
  const cluster = await startCluster()
  trial = await Trial.start({ topology: cluster, upstream: true, queue: { leaseMs: 3_000 }, ...options })
  return cluster
}

describe('a Cluster', () => {
  it('whose slot moves from node to node loses no job, runs none twice and exceeds no limit', async () => {
    const cluster = await start({ queue: { leaseMs: 15_000, limits: { queue: '400/s' } } })
    const workers = await Promise.all([trial.worker(), trial.worker({ mode: 'claim' })])
    const streams = [trial.stream(), trial.stream({ ids: 'generated' })]
    await busyOne(workers, 100)

    // Not written down as a fault: it must excuse nothing.
    await moveAround(cluster, 4)
    const results = await Promise.all(streams.map((stream) => stream.finish()))

    expect(results.flatMap(({ unheard }) => unheard)).toEqual([])
    await trial.expectPromisesKept({ limits: [{ permits: 400, windowMs: 1_000 }], livenessMs: 20_000 })
  })

  it('whose master is killed goes on with its replica, and has lost nothing accepted with durability', async () => {
    const cluster = await start({ durability: { replicas: 1 } })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const streams = [trial.stream({ ordered: false }), trial.stream({ ids: 'generated', ordered: false })]
    await busyOne(workers, 200)

    const { afterUs, at, fault, master } = await losesMaster(trial, cluster)
    const resumedMs = await resumed(workers, afterUs, at)
    fault.end()
    await cluster.heal()
    await Promise.all(streams.map((stream) => stream.finish()))

    expect(resumedMs).toBeLessThan(10_000)
    expect(await cluster.masterOf(KEY)).not.toBe(master)
    await expectAcceptedKept(trial)
  })
})
