import { describe, expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { ownProcess } from './own-process.ts'

const HEARTBEAT_MS = 300

const engine = useEngine()

/** Until so many processes wait to be woken for the queue. */
async function untilIdle(processes: number): Promise<void> {
  const client = engine.server.client()
  await until(async () => (await client.zcard(`${keyPrefix(engine.prefix, 'q')}idle`)) === processes)
}

describe('a process that serves the high level only', () => {
  it('keeps no work of other levels from one that serves them, though it went to sleep last and holds an alarm', async () => {
    const [all, high] = [engine.queue(), engine.queue()]
    let done = new Countdown(2)
    all.process('T', () => done.tick())
    await untilIdle(1)
    high.process('T', () => done.tick(), { levels: ['high'] })
    await untilIdle(2)
    const startedAt = performance.now()

    for (let round = 0; round < 10; round++) {
      done = new Countdown(2)
      await high.submit({ type: 'T' })
      await high.submit({ type: 'T', delayMs: 50 })
      await done.reached
      await untilIdle(2)
    }

    // Left to its heartbeat the first round takes 12 s.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
  })
})

describe('a process with two queues', () => {
  it('finds work of the one whose wake-up was lost, though the other is woken all the time', async () => {
    const queue = ownProcess(engine, { heartbeatMs: HEARTBEAT_MS })
    const [busy, quiet] = [queue('busy', {}), queue('quiet', {})]
    let isOver = false
    let runs = 0
    busy.process('T', async () => {
      runs += 1
      if (!isOver) await busy.submit({ type: 'T' })
    })
    const started = withResolvers<void>()
    quiet.process('T', () => started.resolve())
    const client = engine.server.client()
    const idle = `${keyPrefix(engine.prefix, 'quiet')}idle`
    await until(async () => (await client.zcard(idle)) === 1)
    await busy.submit({ type: 'T' })
    await until(() => runs > 3)

    // As if it had been killed and waited no longer: whoever submits knows of nobody to wake.
    await client.del(idle)
    await engine.queue({}, 'quiet').submit({ type: 'T' })
    await started.promise
    isOver = true

    expect(runs).toBeGreaterThan(3)
  })
})
