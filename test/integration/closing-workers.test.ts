import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('a worker that closes', () => {
  it('lets running jobs end within their grace, and starts no other', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T', jobs: payloads(10) })
    const running = new Countdown(2)
    let ended = 0
    queue.process(
      'T',
      async () => {
        running.tick()
        await pause(50)
        ended += 1
      },
      { concurrency: 2 },
    )
    await running.reached

    await queue.close()

    expect(ended).toBe(2)
    expect(await engine.queue().counts()).toMatchObject({ succeeded: 2, waiting: 8, running: 0 })
  })

  it('still takes submits when it is only stopped, and runs nothing more', async () => {
    const queue = engine.queue()
    const running = new Countdown(1)
    queue.process('T', () => running.tick())
    await queue.submit({ type: 'T' })
    await running.reached

    await queue.stop()
    await queue.submit({ type: 'T' })

    expect(await queue.counts()).toMatchObject({ succeeded: 1, waiting: 1 })
    expect(() => queue.process('T', () => {})).toThrow(/closed/)
    await expect(queue.aggregate('T', () => {})).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
  })

  it('gives back at once what is left after its grace, and another runs it immediately', async () => {
    const queue = engine.queue({ shutdownGraceMs: 30 })
    await queue.submit({ type: 'T', jobs: payloads(3) })
    const running = new Countdown(3)
    const reasons: unknown[] = []
    queue.process('T', async (_job, { signal }) => {
      signal.addEventListener('abort', () => reasons.push((signal.reason as { code?: string }).code))
      running.tick()
      await new Promise(() => {})
    })
    await running.reached
    const other = engine.queue()
    const started: unknown[] = []
    const done = new Countdown(3)
    other.process('T', (job) => {
      started.push(`${job.payload}.${job.attempt}`)
      done.tick()
    })

    const at = performance.now()
    await queue.close()
    await done.reached

    expect(performance.now() - at).toBeLessThan(3_000)
    expect(started).toEqual(['1.1', '2.1', '3.1'])
    expect(reasons).toEqual(['SLUICE_CLOSED', 'SLUICE_CLOSED', 'SLUICE_CLOSED'])
    await until(async () => (await other.counts()).succeeded === 3)
    expect(await other.counts()).toMatchObject({ released: 3, stalled: 0 })
  })

  it('waits for the same end however often it is called', async () => {
    const sluice = engine.sluice()
    const queue = sluice.queue('q')
    await queue.submit({ type: 'T' })
    const started = withResolvers<void>()
    const mayEnd = withResolvers<void>()
    const events: string[] = []
    queue.process('T', async () => {
      started.resolve()
      await mayEnd.promise
      events.push('job')
    })
    await started.promise

    const first = sluice.close()
    const second = sluice.close().then(() => events.push('second close'))
    await pause(20)
    mayEnd.resolve()
    await Promise.all([first, second])

    expect(events).toEqual(['job', 'second close'])
  })

  it('refuses what comes after', async () => {
    const queue = engine.queue()
    await queue.submit({ type: 'T' })
    await queue.close()
    await queue.close()

    await expect(queue.submit({ type: 'T' })).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    await expect(queue.claim(1)).rejects.toMatchObject({ code: 'SLUICE_CLOSED' })
    expect(() => queue.process('T', () => {})).toThrow(/closed/)
  })
})
