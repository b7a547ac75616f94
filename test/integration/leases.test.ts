import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LeaseLostError } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('a lease', () => {
  it('is renewed for as long as its job runs', async () => {
    const queue = engine.queue({ leaseMs: 150 })
    await queue.submit({ type: 'T' })
    let runs = 0
    const done = new Countdown(1)

    for (const each of [queue, engine.queue({ leaseMs: 150 })]) {
      each.process('T', async () => {
        runs += 1
        await pause(700)
        done.tick()
      })
    }
    await done.reached

    expect(runs).toBe(1)
    await until(async () => (await queue.counts()).succeeded === 1)
    expect(await queue.counts()).toMatchObject({ stalled: 0 })
  })

  it('that runs out gives the job to another, with a larger fence', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', payload: 'x' })
    const [lost] = await queue.claim(1, { leaseMs: 100 })
    const fence = withResolvers<string>()

    engine.queue().process('T', (job, context) => {
      expect(job.attempt).toBe(1)
      fence.resolve(context.fence)
    })

    expect(Number(await fence.promise)).toBeGreaterThan(Number(lost?.fence))
    await expect(lost?.succeed()).rejects.toBeInstanceOf(LeaseLostError)
    await until(async () => (await queue.counts()).succeeded === 1)
  })

  it('that is lost aborts the signal of its job', async () => {
    const queue = engine.queue({ leaseMs: 150 })
    const { id } = await queue.submit({ type: 'T' })
    const lost = withResolvers<unknown>()
    const running = new Countdown(1)
    queue.process('T', async (_job, { signal }) => {
      running.tick()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      lost.resolve(signal.reason)
    })
    await running.reached

    // As when another process has found it expired.
    const client = engine.server.client()
    await client.del(`${engine.prefix}:{q}:q:leases`)

    expect(await lost.promise).toMatchObject({ code: 'SLUICE_LEASE_LOST', jobId: id })
  })

  it('that is lost to a new run in the same process leaves the old run its hand, until it ends', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', payload: 'x' })
    const releases: (() => void)[] = []
    let running = 0
    let most = 0
    queue.process(
      'T',
      async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise<void>((resolve) => releases.push(resolve))
        running -= 1
      },
      { concurrency: 2 },
    )
    await until(() => releases.length === 1)

    // The lease has run out, and the next claim takes the job back: the pool's own, woken by another job.
    const client = engine.server.client()
    const [lease = ''] = await client.zrange(`${engine.prefix}:{q}:q:leases`, 0, '0')
    await client.zadd(`${engine.prefix}:{q}:q:leases`, 'XX', 1, lease)
    await queue.submit({ type: 'T', payload: 'y' })
    await until(() => releases.length === 2)
    releases[0]?.()
    await until(async () => releases.length === 3)
    await queue.submit({ type: 'T', jobs: payloads(5) })
    await pause(100)

    expect(most).toBe(2)
    await until(async () => {
      for (const release of releases) release()
      return (await queue.counts()).succeeded === 7
    })
  })

  it('that runs out again and again makes the job a dead letter', async () => {
    const queue = engine.queue({ maxStalls: 1 })
    const { id } = await queue.submit({ type: 'T' })
    await queue.claim(1, { leaseMs: 100 })
    await until(async () => (await queue.claim(1, { leaseMs: 100 })).length === 1)

    await until(async () => {
      await queue.claim(1)
      return (await queue.counts()).failed === 1
    })

    expect(await queue.job(id)).toMatchObject({ state: 'failed', reason: 'stalled' })
  })
})
