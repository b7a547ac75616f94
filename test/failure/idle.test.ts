import { afterEach, describe, expect, it } from 'vitest'
import { busiestWindow } from '../support/arrivals.ts'
import { now } from '../support/history.ts'
import { Scenario } from './scenario.ts'

const MEASURED_MS = 16_000

let scenario: Scenario
afterEach(() => scenario.stop())

describe('an idle process', () => {
  it('sends at most one request every 5 s, counted on the wire, and starts new work at once', async () => {
    scenario = await Scenario.start({ proxy: true })
    const worker = await scenario.worker()
    await scenario.submitted({ count: 20, chunk: 20 })
    await worker.ended(20)
    const times: number[] = []
    let lastRequest = now()
    scenario.proxy?.on('request', () => {
      lastRequest = now()
      times.push(lastRequest)
    })
    // It is idle once it has asked for more, got nothing and gone to sleep.
    await expect.poll(() => now() - lastRequest, { timeout: 10_000 }).toBeGreaterThan(1_000)
    times.length = 0

    await new Promise((resolve) => setTimeout(resolve, MEASURED_MS))
    const sent = [...times]
    await scenario.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: 'late' } })
    const submittedAt = now()
    await worker.ended(21)

    // Timers are early by a millisecond now and then.
    expect(busiestWindow(sent, 4_950).count).toBeLessThanOrEqual(1)
    expect(now() - submittedAt).toBeLessThan(1_000)
  })
})
