import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Trial } from './trial.ts'

const ROUNDS = 500

let trial: Trial
afterEach(() => trial.stop())

describe('work that is submitted while a worker goes to sleep', () => {
  it('wakes it every time', async () => {
    trial = await Trial.start()
    const worker = await trial.worker()

    // The next job is submitted when the handler of the last one ends: just when the worker asks for more, in vain.
    let slowest = 0
    for (let i = 1; i <= ROUNDS && slowest < 1_000; i++) {
      const submittedAt = now()
      await trial.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: `job-${i}` } })
      await worker.ended(i)
      slowest = Math.max(slowest, now() - submittedAt)
    }

    // A sleep that was not interrupted lasts until the next heartbeat, seconds later.
    expect(slowest).toBeLessThan(1_000)
  })
})
