import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { LeaseLostError, PermanentError, ThrottledError } from '../../src/index.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('a loop of one’s own', () => {
  it('claims jobs and says what became of each', async () => {
    const queue = engine.queue({ maxRetries: 1 })
    await queue.submit({ type: 'T', jobs: payloads(6) })
    const jobs = await queue.claim(10)

    await jobs[0]?.succeed()
    await jobs[1]?.fail(new Error('again'))
    await jobs[2]?.fail(new PermanentError('gone'))
    await jobs[3]?.throttle({ retryAfterMs: 60_000 })
    await jobs[4]?.release()
    await jobs[5]?.renew()

    expect(jobs).toHaveLength(6)
    expect(jobs[0]).toMatchObject({ type: 'T', tenant: 'default', level: 'normal', lane: 'default', attempt: 1 })
    expect(await queue.counts()).toMatchObject({
      succeeded: 1,
      retried: 1,
      failed: 1,
      throttled: 1,
      released: 1,
      running: 1,
      waiting: 1,
      delayed: 2,
    })
    expect((await queue.claim(10)).map((job) => job.payload)).toEqual([5])
  })

  it('says with an error what a handler would say by throwing it', async () => {
    const queue = engine.queue({ limits: { upstream: '1000/s' }, maxRetries: 0 })
    await queue.submit({ type: 'T', jobs: payloads(3) })
    const [pushedBack, gone, alike] = await queue.claim(3)

    await pushedBack?.fail(new ThrottledError({ retryAfterMs: 60_000 }))
    await gone?.discard('gone')
    await alike?.fail(Object.assign(new Error('of another library'), { code: 'SLUICE_PERMANENT' }))

    expect(await queue.counts()).toMatchObject({ throttled: 1, delayed: 1, failed: 2 })
    expect((await queue.deadLetters.list()).letters).toMatchObject([
      { reason: 'failed' },
      { reason: 'discarded', error: { message: 'gone' } },
    ])
    expect((await queue.limits.status('upstream'))?.closedUntil).toBeGreaterThan(Date.now() + 30_000)
  })

  it('is told when a job is no longer its own, and changes nothing then', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T' })
    const [job] = await queue.claim(1)
    await job?.succeed()
    const before = await queue.counts()

    await expect(job?.succeed()).rejects.toBeInstanceOf(LeaseLostError)
    await expect(job?.fail(new Error('x'))).rejects.toBeInstanceOf(LeaseLostError)
    await expect(job?.throttle()).rejects.toBeInstanceOf(LeaseLostError)
    await expect(job?.release()).rejects.toBeInstanceOf(LeaseLostError)
    await expect(job?.renew()).rejects.toBeInstanceOf(LeaseLostError)
    expect(await queue.counts()).toEqual(before)
  })

  it('keeps its jobs by renewing', async () => {
    const queue = engine.queue({ leaseMs: 300 })
    await queue.submit({ type: 'T' })
    const [job] = await queue.claim(1)

    for (let i = 0; i < 5; i++) {
      await pause(120)
      await job?.renew()
      expect(await queue.claim(1)).toEqual([])
    }

    await job?.succeed()
  })

  it('claims what it asked for of chosen levels', async () => {
    const queue = engine.queue()
    for (const level of ['high', 'low'] as const) await queue.submit({ type: 'T', level, jobs: payloads(2) })

    expect((await queue.claim(10, { levels: ['low'] })).map((job) => job.level)).toEqual(['low', 'low'])
  })
})
