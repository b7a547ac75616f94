import { afterEach, describe, expect, it } from 'vitest'
import { startSentinels, type TestSentinels } from '../support/sentinels.ts'
import { brokenBeside, expectAcceptedKept, loseMaster, lostJobs } from './failover.ts'
import { Trial, type TrialOptions } from './trial.ts'
import { busyOne } from './worker.ts'

let trial: Trial
afterEach(() => trial.stop())

async function start(options: TrialOptions = {}): Promise<TestSentinels> {
  const sentinels = await startSentinels()
  trial = await Trial.start({ topology: sentinels, queue: { leaseMs: 3_000 }, ...options })
  return sentinels
}

describe('a master that is lost while its replicas lag', () => {
  it('dead or hung, has lost nothing that was accepted with durability, and work goes on in seconds', async () => {
    const sentinels = await start({ upstream: true, durability: { replicas: 1 } })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const given = trial.stream({ ordered: false })
    const generated = trial.stream({ ids: 'generated', ordered: false })
    await busyOne(workers, 200)

    const dead = await loseMaster(trial, sentinels, workers, 'dead')
    await sentinels.heal()
    const hung = await loseMaster(trial, sentinels, workers, 'hung')
    await sentinels.heal()
    const results = await Promise.all([given.finish(), generated.finish()])

    expect(dead.resumedMs).toBeLessThan(5_000)
    expect(hung.resumedMs).toBeLessThan(6_000)
    expect(results.map(({ accepted }) => accepted > 0)).toEqual([true, true])
    await expectAcceptedKept(trial)
  })

  it('without durability, has lost only what was accepted while they lagged', async () => {
    const sentinels = await start({ upstream: true })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const producer = trial.stream({ ids: 'generated', ordered: false })
    await busyOne(workers, 200)

    const failover = await loseMaster(trial, sentinels, workers, 'dead')
    await sentinels.heal()
    await producer.finish()

    const { history, violations } = await trial.check({ forgetsMs: 1_000 })
    const lost = lostJobs(history, violations, [failover])
    expect(brokenBeside(violations)).toEqual([])
    expect(lost.length).toBeGreaterThan(0)
    // The replicas stood still for 150 ms; a busy machine may add to that.
    expect(Math.max(...lost.map(({ ageMs }) => ageMs))).toBeLessThan(1_000)
  })
})
