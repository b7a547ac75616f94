import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { busyOne, runAgain, Scenario, type Worker } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

describe('a worker that is killed −9', () => {
  it('has its jobs run again by another within 16 s, with the defaults', async () => {
    scenario = await Scenario.start()
    const victim = await scenario.worker({ concurrency: 5, hangs: true })
    await scenario.submitted({ count: 5 })
    const lost = await victim.started(5)
    const heir = await scenario.worker()

    const killedAt = now()
    scenario.fault('kill', victim)
    await victim.end('SIGKILL')
    const again = await heir.started(5)

    expect(now() - killedAt).toBeLessThan(16_000)
    expect(again.sort()).toEqual(lost.sort())
    await scenario.expectPromisesKept({ livenessMs: 16_000 })
  })

  it('loses nothing and repeats only what it held, whenever it is killed', async () => {
    scenario = await Scenario.start({ queue: { leaseMs: 1_000 }, upstream: true })
    let workers: Worker[] = await Promise.all([scenario.worker(), scenario.worker()])
    const producer = scenario.stream()

    for (let kills = 0; kills < 5; kills++) {
      const victim = await busyOne(workers, 40)
      scenario.fault('kill', victim)
      await victim.end('SIGKILL')
      workers = [...workers.filter((worker) => worker !== victim), await scenario.worker()]
    }
    await producer.finish()

    const history = await scenario.expectPromisesKept()
    expect(runAgain(history).length).toBeGreaterThan(0)
  })
})
