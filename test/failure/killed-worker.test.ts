import { afterEach, describe, expect, it } from 'vitest'
import { now, runAgain } from '../support/history.ts'
import { Trial } from './trial.ts'
import { busyOne, type Worker } from './worker.ts'

let trial: Trial
afterEach(() => trial.stop())

describe('a worker that is killed −9', () => {
  it('has its jobs run again by another within 16 s, with the defaults', async () => {
    trial = await Trial.start()
    const victim = await trial.worker({ concurrency: 5, hangs: true })
    await trial.submitted({ count: 5 })
    const lost = await victim.started(5)
    const heir = await trial.worker()

    const killedAt = now()
    trial.fault('kill', victim)
    await victim.end('SIGKILL')
    const again = await heir.started(5)

    expect(now() - killedAt).toBeLessThan(16_000)
    expect(again.sort()).toEqual(lost.sort())
    await trial.expectPromisesKept({ livenessMs: 16_000 })
  })

  it('loses nothing and repeats only what it held, whenever it is killed', async () => {
    trial = await Trial.start({ queue: { leaseMs: 1_000 }, upstream: true })
    let workers: Worker[] = await Promise.all([trial.worker(), trial.worker()])
    const producer = trial.stream()

    for (let kills = 0; kills < 5; kills++) {
      const victim = await busyOne(workers, 40)
      trial.fault('kill', victim)
      await victim.end('SIGKILL')
      workers = [...workers.filter((worker) => worker !== victim), await trial.worker()]
    }
    await producer.finish()

    const history = await trial.expectPromisesKept()
    expect(runAgain(history).length).toBeGreaterThan(0)
  })
})
