import { expect, it } from 'vitest'
import { Countdown } from '../support/countdown.ts'
import { drain } from './drain.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

it('starts the jobs of a lane in the order they were submitted', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', jobs: payloads(100) })
  await queue.submit({ type: 'T', payload: 101 })
  const started: unknown[] = []
  const done = new Countdown(101)

  queue.process(
    'T',
    (job) => {
      started.push(job.payload)
      done.tick()
    },
    { concurrency: 10 },
  )
  await done.reached

  expect(started).toEqual(payloads(101).map(({ payload }) => payload))
})

it('keeps the order of a stream whether its jobs have ids of their own or not', async () => {
  const queue = engine.queue()
  const jobs = payloads(60).map(({ payload }) => (payload % 3 === 0 ? { payload, id: `id-${payload}` } : { payload }))

  await queue.submit({ type: 'T', jobs })

  expect(await drain(queue, (job) => String(job.payload))).toEqual(payloads(60).map(({ payload }) => String(payload)))
})

it('lets the lanes of a tenant take turns, and keeps order inside', async () => {
  const queue = engine.queue({ quantum: 1 })
  for (const lane of ['a', 'b', 'c']) await queue.submit({ type: 'T', lane, jobs: payloads(3) })

  const order = await drain(queue, (job) => job.lane + String(job.payload))

  expect(order.join(' ')).toBe('a1 b1 c1 a2 b2 c2 a3 b3 c3')
})

it('does not let a tenant win share by splitting itself over many lanes', async () => {
  const queue = engine.queue({ quantum: 1 })
  for (let lane = 0; lane < 20; lane++)
    await queue.submit({ type: 'T', lane: `${lane}`, jobs: payloads(5).map((job) => ({ ...job, tenant: 'many' })) })
  await queue.submit({ type: 'T', tenant: 'one', jobs: payloads(50) })

  const order = await drain(queue, (job) => job.tenant, 60)

  expect(order.filter((tenant) => tenant === 'one')).toHaveLength(30)
})

it('lets a second action start beside a first that is much longer', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', lane: 'first', jobs: payloads(500) })
  await queue.submit({ type: 'T', lane: 'second', jobs: payloads(3) })

  const order = await drain(queue, (job) => job.lane, 20)

  expect(order.filter((lane) => lane === 'second')).toHaveLength(3)
})

it('starts a retry later than what came after it', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', jobs: payloads(3) })
  const started: string[] = []
  const done = new Countdown(4)

  queue.process(
    'T',
    (job) => {
      started.push(`${job.payload}.${job.attempt}`)
      done.tick()
      if (job.payload === 1 && job.attempt === 1) throw new Error('once')
    },
    { concurrency: 1 },
  )
  await done.reached

  expect(started).toEqual(['1.1', '2.1', '3.1', '1.2'])
})

it('starts the next job of an ordered lane only when the one before has ended, its retries included', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'T', lane: 'exact', ordered: true, jobs: payloads(4) })
  const events: string[] = []
  const done = new Countdown(4)

  queue.process('T', async (job) => {
    events.push(`start ${job.payload}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
    events.push(`end ${job.payload}`)
    if (job.payload === 2 && job.attempt === 1) throw new Error('once')
    done.tick()
  })
  await done.reached

  expect(events).toEqual([1, 2, 2, 3, 4].flatMap((payload) => [`start ${payload}`, `end ${payload}`]))
})

it('goes on with an ordered lane after a job that is given up', async () => {
  const queue = engine.queue({ maxRetries: 0 })
  await queue.submit({ type: 'T', lane: 'exact', ordered: true, jobs: payloads(3) })
  const started: unknown[] = []
  const done = new Countdown(3)

  queue.process('T', (job) => {
    started.push(job.payload)
    done.tick()
    if (job.payload === 1) throw new Error('for good')
  })
  await done.reached

  expect(started).toEqual([1, 2, 3])
})

it('runs many ordered lanes side by side, each in its order', async () => {
  const queue = engine.queue()
  const lanes = Array.from({ length: 20 }, (_, index) => `lane-${index}`)
  for (const lane of lanes) await queue.submit({ type: 'T', lane, ordered: true, jobs: payloads(10) })
  const running = new Map<string, number>()
  const next = new Map<string, number>()
  const problems: string[] = []
  const done = new Countdown(200)

  queue.process(
    'T',
    async (job) => {
      if (running.get(job.lane)) problems.push(`two jobs of ${job.lane} at once`)
      if (job.payload !== (next.get(job.lane) ?? 1)) problems.push(`${job.payload} of ${job.lane} out of order`)
      running.set(job.lane, 1)
      next.set(job.lane, job.payload + 1)
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 4))
      running.set(job.lane, 0)
      done.tick()
    },
    { concurrency: 30 },
  )
  await done.reached

  expect(problems).toEqual([])
})
