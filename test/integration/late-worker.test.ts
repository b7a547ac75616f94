import { expect, it } from 'vitest'
import { queueKeys } from '../../src/store/keys.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

const leaseMs = 200

/** Nothing of this process moves for that long: no timer, no reply, no renewal. */
function standStill(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

/** As if nobody had renewed any lease of the queue for long. */
async function endLeases(): Promise<void> {
  const redis = engine.server.client()
  const key = queueKeys(engine.prefix, 'q', '').leases
  for (const lease of await redis.zrange(key, '0', '-1')) await redis.zadd(key, '1', lease)
}

it('counts a run that has lost its lease beside the next run of the same job, and cancels the next when the first has ended', async () => {
  const queue = engine.queue()
  const { id } = await queue.submit({ type: 'T', payload: 1 })
  const firstRun = withResolvers<void>()
  const firstEnds = withResolvers<void>()
  const secondRun = withResolvers<AbortSignal>()
  const thirdRun = withResolvers<void>()
  const started: unknown[] = []
  queue.process(
    'T',
    (job, { signal }) => {
      started.push(job.payload)
      if (started.length === 1) {
        firstRun.resolve()
        return firstEnds.promise
      }
      if (job.payload === 3) thirdRun.resolve()
      if (job.payload !== 1) return
      secondRun.resolve(signal)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
    { concurrency: 2 },
  )

  await firstRun.promise
  await endLeases()
  await queue.submit({ type: 'T', payload: 2 })
  const signal = await secondRun.promise
  await queue.submit({ type: 'T', payload: 3 })
  await queue.counts()
  const startedMeanwhile = started.includes(3)
  firstEnds.resolve()
  await thirdRun.promise
  await queue.cancel(id)
  await until(async () => (await queue.counts()).canceled === 1)

  expect(startedMeanwhile).toBe(false)
  expect(signal.aborted).toBe(true)
  expect(await queue.counts()).toMatchObject({ stalled: 1, succeeded: 2, running: 0 })
})

it('gives back jobs whose claim is answered after their lease, and runs them under the next', async () => {
  const queue = engine.queue({ leaseMs })
  await queue.submit({ type: 'T', jobs: payloads(5) })
  const started: unknown[] = []
  queue.process('T', (job) => {
    started.push(job.payload)
  })

  // The claim is on its way then, and its reply is read afterwards.
  await new Promise((resolve) => setImmediate(resolve))
  standStill(2 * leaseMs)
  await until(async () => (await queue.counts()).succeeded === 5)

  expect(started).toEqual([1, 2, 3, 4, 5])
  expect(await queue.counts()).toMatchObject({ released: 5, stalled: 0 })
})
