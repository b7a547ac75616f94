import { afterEach, describe, expect, it } from 'vitest'
import { now } from '../support/history.ts'
import { Scenario } from './scenario.ts'

/** Long enough that it does not matter in which part of its rhythm the process is when the count begins. */
const MEASURED_MS = 24_000

let scenario: Scenario
afterEach(() => scenario.stop())

describe('an idle process', () => {
  it('sends at most one request every 5 s, counted on the wire, and starts new work at once', async () => {
    // It has the audit of the queue in hand.
    scenario = await Scenario.start({ proxy: true, queue: { audit: { everyMs: 1_000 } } })
    const worker = await scenario.worker()
    await scenario.submitted({ count: 20, chunk: 20 })
    await worker.ended(20)
    let requests = 0
    let lastRequest = now()
    scenario.proxy?.on('request', () => {
      lastRequest = now()
      requests++
    })
    // It is idle once it has asked for more, got nothing and gone to sleep.
    await expect.poll(() => now() - lastRequest, { timeout: 10_000 }).toBeGreaterThan(1_000)
    requests = 0

    await new Promise((resolve) => setTimeout(resolve, MEASURED_MS))
    const sent = requests
    await scenario.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: 'late' } })
    const submittedAt = now()
    await worker.ended(21)

    expect(sent).toBeLessThanOrEqual(MEASURED_MS / 5_000)
    expect(now() - submittedAt).toBeLessThan(1_000)
  })
})
