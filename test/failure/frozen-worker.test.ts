import { afterEach, describe, expect, it } from 'vitest'
import { busyOne, runAgain, Scenario } from './scenario.ts'

const LEASE_MS = 1_000

let scenario: Scenario
afterEach(() => scenario.stop())

describe('a worker that is stopped past its lease and resumed', () => {
  it('is told that its claim is stale, and changes nothing', async () => {
    scenario = await Scenario.start({ queue: { leaseMs: LEASE_MS } })
    const zombie = await scenario.worker({ mode: 'claim', concurrency: 5 })
    await scenario.submitted({ count: 5, holdMs: 2_000 })
    await zombie.started(5)

    const fault = scenario.fault('stop', zombie)
    zombie.freeze()
    const heir = await scenario.worker({ mode: 'claim', concurrency: 5 })
    await heir.ended(5)
    await scenario.drained()
    const before = await scenario.queue.counts()
    zombie.resume()
    fault.end()
    await zombie.ended(5)
    const answers = () =>
      scenario.history().filter(({ kind, process }) => kind === 'outcome' && process === zombie.name)
    await expect.poll(() => answers().length, { timeout: 20_000 }).toBe(5)

    expect(answers().map((event) => event.kind === 'outcome' && event.answer)).toEqual(Array(5).fill('stale'))
    expect(await scenario.queue.counts()).toEqual(before)
    await scenario.expectPromisesKept()
  })

  it('harms nobody, again and again under load', async () => {
    scenario = await Scenario.start({ queue: { leaseMs: LEASE_MS }, upstream: true })
    const workers = await Promise.all([scenario.worker(), scenario.worker(), scenario.worker({ mode: 'claim' })])
    const producer = scenario.stream()

    for (let stops = 1; stops <= 5; stops++) {
      // In turn, so that each kind of worker is among them.
      workers.push(...workers.splice(0, 1))
      const worker = await busyOne(workers, 40 * stops)
      const fault = scenario.fault('stop', worker)
      worker.freeze()
      await longerThanLease()
      worker.resume()
      fault.end()
    }
    await producer.finish()

    const history = await scenario.expectPromisesKept()
    expect(runAgain(history).length).toBeGreaterThan(0)
  })
})

/** Nothing announces that a lease ran out, so this one wait is a wait for time. */
async function longerThanLease(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, LEASE_MS * 1.5))
}
