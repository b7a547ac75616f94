import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { Trial, type TrialOptions } from './trial.ts'
import { busyOne } from './worker.ts'

let trial: Trial
afterEach(() => trial.stop())

async function start(options: TrialOptions = {}): Promise<TcpProxy> {
  trial = await Trial.start({ proxy: true, upstream: true, ...options })
  if (trial.proxy === undefined) throw new Error('no proxy')
  return trial.proxy
}

describe('a link to Redis that breaks', () => {
  // None of these is written down as a fault: leases outlast them, so they must excuse no second run.
  it('after the request was forwarded: what was done is not done again', async () => {
    const proxy = await start()
    const rule = proxy.loseReplies({ containing: 'FCALL', every: 3 })
    await Promise.all([trial.worker(), trial.worker()])

    const results = await Promise.all([
      trial.submitted({ count: 750, chunk: 5, holdMs: 2 }),
      trial.submitted({ count: 750, chunk: 5, holdMs: 2, ids: 'generated' }),
    ])
    await trial.drained()
    rule.stop()

    expect(rule.lost).toBeGreaterThan(100)
    expect(results.map(({ accepted, duplicates, unheard }) => ({ accepted, duplicates, unheard }))).toEqual([
      { accepted: 750, duplicates: 0, unheard: [] },
      { accepted: 750, duplicates: 0, unheard: [] },
    ])
    await trial.expectPromisesKept()
  })

  it('at any moment, for all at once: nothing is lost and nothing runs twice', async () => {
    const proxy = await start()
    await Promise.all([trial.worker(), trial.worker()])
    const cutter = setInterval(() => proxy.cut(), 150)
    onTestFinished(() => clearInterval(cutter))

    await Promise.all([
      trial.submitted({ count: 1_000, chunk: 10, everyMs: 25, holdMs: 5 }),
      trial.submitted({ count: 1_000, chunk: 10, everyMs: 25, holdMs: 5, ids: 'generated' }),
    ])
    clearInterval(cutter)

    await trial.expectPromisesKept()
  })

  it('without a word after the request was forwarded: time-outs find it, and nothing is done again', async () => {
    const proxy = await start()
    await Promise.all([trial.worker(), trial.worker()])
    const rule = proxy.loseReplies({ containing: 'FCALL', every: 40, times: 6, how: 'silence' })

    await Promise.all([
      trial.submitted({ count: 600, chunk: 5, holdMs: 2 }),
      trial.submitted({ count: 600, chunk: 5, holdMs: 2, ids: 'generated' }),
    ])

    await expect.poll(() => rule.lost, { timeout: 20_000 }).toBe(6)
    await trial.expectPromisesKept()
  })

  it('into a black hole for longer than a lease: work goes on when it heals', async () => {
    const proxy = await start({ queue: { leaseMs: 1_500 } })
    const workers = await Promise.all([trial.worker(), trial.worker()])
    const producer = trial.stream()

    for (let round = 1; round <= 2; round++) {
      await busyOne(workers, 200 * round)
      const fault = trial.fault('blackhole')
      proxy.blackhole()
      // The silence itself is the event.
      await new Promise((resolve) => setTimeout(resolve, 2_000))
      proxy.heal()
      fault.end()
    }
    await producer.finish()

    await trial.expectPromisesKept({ livenessMs: 15_000 })
  })

  it('in small pieces and late: everything is as always', async () => {
    const proxy = await start()
    proxy.latencyMs = 5
    proxy.sliceBytes = 7
    await trial.worker()

    const result = await trial.submitted({ count: 200, chunk: 20 })

    expect(result.accepted).toBe(200)
    await trial.expectPromisesKept()
  })

  it('with refused connections: a process that was cut off comes back by itself', async () => {
    const proxy = await start()
    const worker = await trial.worker()
    await trial.submitted({ count: 20 })
    await worker.ended(20)
    // Their ends are stored a moment after them.
    await trial.drained()

    await proxy.refuse()
    proxy.cut()
    for (let i = 0; i < 20; i++) await trial.queue.submit({ tenant: 'a', type: 'CALL', payload: { name: `late-${i}` } })
    // It tries again after 150 ms at the most: several times in a second.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    const endedMeanwhile = (await trial.queue.counts()).succeeded
    await proxy.accept()

    await worker.ended(40)
    expect(endedMeanwhile).toBe(20)
  })
})
