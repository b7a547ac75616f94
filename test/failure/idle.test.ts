import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Trial } from './trial.ts'

/** Long enough that it does not matter in which part of its rhythm the process is when the count begins. */
const MEASURED_MS = 24_000

let trial: Trial
afterEach(() => trial.stop())

describe('an idle process', () => {
  it('sends at most one request every 5 s for all its queues, counted on the wire, and starts new work at once', async () => {
    // It has the audits of the queues in hand, and two of them have schedules and aggregates.
    trial = await Trial.start({ proxy: true, queue: { audit: { everyMs: 1_000 } } })
    const worker = await trial.worker({ otherQueues: ['second', 'third'] })
    await trial.submitted({ count: 20, chunk: 20 })
    await worker.ended(20)
    let requests = 0
    let lastRequest = now()
    trial.proxy?.on('request', () => {
      lastRequest = now()
      requests++
    })
    const silence = () => expect.poll(() => now() - lastRequest, { timeout: 10_000 }).toBeGreaterThan(1_000)
    // It is idle once it has asked for more, got nothing and gone to sleep. Its first heartbeat loads a script besides.
    await silence()
    requests = 0
    await expect.poll(() => requests, { timeout: 20_000 }).toBeGreaterThan(0)
    await silence()
    requests = 0

    await new Promise((resolve) => setTimeout(resolve, MEASURED_MS))
    const sent = requests
    await trial.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: 'late' } })
    const submittedAt = now()
    await worker.ended(21)

    expect(sent).toBeLessThanOrEqual(MEASURED_MS / 5_000)
    expect(now() - submittedAt).toBeLessThan(1_000)
  })
})
