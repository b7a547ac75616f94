import { afterEach, describe, expect, it } from 'vitest'
import { runAgain } from '../support/history.ts'
import { Trial } from './trial.ts'
import { busyOne } from './worker.ts'

const LEASE_MS = 1_000

let trial: Trial
afterEach(() => trial.stop())

describe('a worker that is stopped past its lease and resumed', () => {
  it('is told that its claim is stale, and changes nothing', async () => {
    trial = await Trial.start({ queue: { leaseMs: LEASE_MS } })
    const zombie = await trial.worker({ mode: 'claim', concurrency: 5 })
    await trial.submitted({ count: 5, holdMs: 2_000 })
    await zombie.started(5)

    const fault = trial.fault('stop', zombie)
    zombie.freeze()
    const heir = await trial.worker({ mode: 'claim', concurrency: 5 })
    await heir.ended(5)
    await trial.drained()
    const before = await trial.queue.counts()
    zombie.resume()
    fault.end()
    await zombie.ended(5)
    const answers = () => trial.history().filter(({ kind, process }) => kind === 'outcome' && process === zombie.name)
    await expect.poll(() => answers().length, { timeout: 20_000 }).toBe(5)

    expect(answers().map((event) => event.kind === 'outcome' && event.answer)).toEqual(Array(5).fill('stale'))
    expect(await trial.queue.counts()).toEqual(before)
    await trial.expectPromisesKept()
  })

  it('harms nobody, again and again under load', async () => {
    trial = await Trial.start({ queue: { leaseMs: LEASE_MS }, upstream: true })
    const workers = await Promise.all([trial.worker(), trial.worker(), trial.worker({ mode: 'claim' })])
    const producer = trial.stream()

    for (let stops = 1; stops <= 5; stops++) {
      // In turn, so that each kind of worker is among them.
      workers.push(...workers.splice(0, 1))
      const worker = await busyOne(workers, 40 * stops)
      const fault = trial.fault('stop', worker)
      worker.freeze()
      await longerThanLease()
      worker.resume()
      fault.end()
    }
    await producer.finish()

    const history = await trial.expectPromisesKept()
    expect(runAgain(history).length).toBeGreaterThan(0)
  })
})

/** Nothing announces that a lease ran out, so this one wait is a wait for time. */
async function longerThanLease(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS * 1.5))
}
