import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { busyOne, Scenario, type ScenarioOptions } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

async function start(options: ScenarioOptions = {}): Promise<TcpProxy> {
  scenario = await Scenario.start({ proxy: true, upstream: true, ...options })
  if (scenario.proxy === undefined) throw new Error('no proxy')
  return scenario.proxy
}

describe('a link to Redis that breaks', () => {
  // None of these is written down as a fault: leases outlast them, so they must excuse no second run.
  it('after the request was forwarded: what was done is not done again', async () => {
    const proxy = await start()
    const rule = proxy.loseReplies({ containing: 'EVALSHA', every: 3 })
    await Promise.all([scenario.worker(), scenario.worker()])

    const results = await Promise.all([
      scenario.submitted({ count: 750, chunk: 5, holdMs: 2 }),
      scenario.submitted({ count: 750, chunk: 5, holdMs: 2, ids: 'generated' }),
    ])
    await scenario.drained()
    rule.stop()

    expect(rule.lost).toBeGreaterThan(100)
    expect(results.map(({ accepted, duplicates, unheard }) => ({ accepted, duplicates, unheard }))).toEqual([
      { accepted: 750, duplicates: 0, unheard: [] },
      { accepted: 750, duplicates: 0, unheard: [] },
    ])
    await scenario.expectPromisesKept()
  })

  it('at any moment, for all at once: nothing is lost and nothing runs twice', async () => {
    const proxy = await start()
    await Promise.all([scenario.worker(), scenario.worker()])
    const cutter = setInterval(() => proxy.cut(), 150)
    onTestFinished(() => clearInterval(cutter))

    await Promise.all([
      scenario.submitted({ count: 1_000, chunk: 10, everyMs: 25, holdMs: 5 }),
      scenario.submitted({ count: 1_000, chunk: 10, everyMs: 25, holdMs: 5, ids: 'generated' }),
    ])
    clearInterval(cutter)

    await scenario.expectPromisesKept()
  })

  it('without a word after the request was forwarded: time-outs find it, and nothing is done again', async () => {
    const proxy = await start()
    await Promise.all([scenario.worker(), scenario.worker()])
    const rule = proxy.loseReplies({ containing: 'EVALSHA', every: 40, times: 6, how: 'silence' })

    await Promise.all([
      scenario.submitted({ count: 600, chunk: 5, holdMs: 2 }),
      scenario.submitted({ count: 600, chunk: 5, holdMs: 2, ids: 'generated' }),
    ])

    await expect.poll(() => rule.lost, { timeout: 20_000 }).toBe(6)
    await scenario.expectPromisesKept()
  })

  it('into a black hole for longer than a lease: work goes on when it heals', async () => {
    const proxy = await start({ queue: { leaseMs: 1_500 } })
    const workers = await Promise.all([scenario.worker(), scenario.worker()])
    const producer = scenario.stream()

    for (let round = 1; round <= 2; round++) {
      await busyOne(workers, 200 * round)
      const fault = scenario.fault('blackhole')
      proxy.blackhole()
      // The silence itself is the event.
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      proxy.heal()
      fault.end()
    }
    await producer.finish()

    await scenario.expectPromisesKept({ livenessMs: 15_000 })
  })

  it('in small pieces and late: everything is as always', async () => {
    const proxy = await start()
    proxy.latencyMs = 5
    proxy.sliceBytes = 7
    await scenario.worker()

    const result = await scenario.submitted({ count: 200, chunk: 20 })

    expect(result.accepted).toBe(200)
    await scenario.expectPromisesKept()
  })

  it('with refused connections: a process that was cut off comes back by itself', async () => {
    const proxy = await start()
    const worker = await scenario.worker()
    await scenario.submitted({ count: 20 })
    await worker.ended(20)
    // Their ends are stored a moment after them.
    await scenario.drained()

    await proxy.refuse()
    proxy.cut()
    for (let i = 0; i < 20; i++)
      await scenario.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: `late-${i}` } })
    // It tries again after 150 ms at the most: several times in a second.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const endedMeanwhile = (await scenario.queue.counts()).succeeded
    await proxy.accept()

    await worker.ended(40)
    expect(endedMeanwhile).toBe(20)
  })
})
