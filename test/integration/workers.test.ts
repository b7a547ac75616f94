import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { InvalidOptionsError, Sluice } from '../../src/index.ts'
import { stopEmbeddedServer } from '../../src/store/embedded.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { Countdown } from '../support/countdown.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

/** Until so many processes wait to be woken for a queue. */
async function untilIdle(queue: string, processes: number): Promise<void> {
  const client = engine.server.client()
  await until(async () => (await client.zcard(`${keyPrefix(engine.prefix, queue)}idle`)) === processes)
}

describe('the processors of a queue in one process', () => {
  it.each<[string, (number | undefined)[], number]>([
    ['the one that gives a number, though another has the default', [1, undefined], 1],
    ['the one that gives a number, though the default came first', [undefined, 1], 1],
    ['the largest of those that give one', [2, undefined, 3], 3],
  ])('run as many jobs at once as %s', async (_, concurrencies, expected) => {
    const queue = engine.queue()
    const done = new Countdown(12)
    let running = 0
    let most = 0
    const handler = async () => {
      running += 1
      most = Math.max(most, running)
      await pause(2)
      running -= 1
      done.tick()
    }
    await queue.submit({ type: 'T0', jobs: payloads(12) })

    concurrencies.forEach((concurrency, at) => {
      queue.process(`T${at}`, handler, concurrency === undefined ? {} : { concurrency })
    })
    await done.reached

    expect(most).toBe(expected)
  })
})

describe('two processes', () => {
  it('share the work of a queue', async () => {
    const queues = [engine.queue(), engine.queue()]
    const runs = [0, 0]
    const done = new Countdown(200)
    queues.forEach((queue, at) => {
      queue.process(
        'T',
        async () => {
          runs[at] = (runs[at] ?? 0) + 1
          await pause(2)
          done.tick()
        },
        { concurrency: 4 },
      )
    })

    await queues[0]?.submit({ type: 'T', jobs: payloads(200) })
    await done.reached

    expect(Math.min(...runs)).toBeGreaterThan(20)
  })

  it('wake each other: what one submits the other starts at once', async () => {
    const [producer, consumer] = [engine.queue(), engine.queue()]
    const latencies: number[] = []
    let started = withResolvers<void>()
    consumer.process('T', () => started.resolve())
    await producer.submit({ type: 'T' })
    await started.promise

    for (let i = 0; i < 30; i++) {
      await pause(Math.random() * 15)
      started = withResolvers<void>()
      const at = performance.now()
      await producer.submit({ type: 'T' })
      await started.promise
      latencies.push(performance.now() - at)
    }

    // Not by their heartbeats, which are seconds apart; the median, for the machine is shared.
    latencies.sort((a, b) => a - b)
    expect(latencies[Math.floor(latencies.length / 2)]).toBeLessThan(60)
    expect(latencies.at(-1)).toBeLessThan(5_000)
  })

  it('are all woken when there is work for all', async () => {
    const queues = [engine.queue(), engine.queue(), engine.queue()]
    const running = new Set<number>()
    const released = withResolvers<void>()
    queues.forEach((queue, at) => {
      queue.process(
        'T',
        async () => {
          running.add(at)
          await released.promise
        },
        { concurrency: 1 },
      )
    })
    await untilIdle('q', 3)

    await queues[0]?.submit({ type: 'T', jobs: payloads(3) })

    await until(() => running.size === 3)
    released.resolve()
    await until(async () => (await queues[0]?.counts())?.succeeded === 3)
  })

  it('do not run a job twice', async () => {
    const queues = [engine.queue(), engine.queue(), engine.queue()]
    const runs = new Map<number, number>()
    const done = new Countdown(1_000)
    for (const queue of queues) {
      queue.process<number>('T', (job) => {
        runs.set(job.payload, (runs.get(job.payload) ?? 0) + 1)
        done.tick()
      })
    }

    await Promise.all(
      queues.map((queue, at) =>
        queue.submit({ type: 'T', jobs: payloads(400).map(({ payload }) => ({ payload: at * 1_000 + payload })) }),
      ),
    )
    await done.reached
    await until(async () => (await queues[0]?.counts())?.succeeded === 1_200)

    expect([...runs.values()].filter((count) => count !== 1)).toEqual([])
  })
})

it('takes processors of several types, and waits for all registered together', async () => {
  const queue = engine.queue()
  for (const type of ['A', 'B', 'C']) await queue.submit({ type, jobs: payloads(5) })
  const done = new Countdown(15)

  for (const type of ['A', 'B', 'C']) queue.process(type, () => done.tick())
  await done.reached

  expect(await queue.counts()).toMatchObject({ unknownType: 0 })
})

it('answers the same queue for the same name, and refuses other options for it', () => {
  const sluice = engine.sluice()
  const queue = sluice.queue('q', { quantum: 2 })

  expect(sluice.queue('q')).toBe(queue)
  expect(() => sluice.queue('q', { quantum: 3 })).toThrow(InvalidOptionsError)
  expect(() => sluice.queue('no such name!')).toThrow(/Invalid options/)
})

it('keeps queues of one process apart', async () => {
  const sluice = engine.sluice()
  const [a, b] = [sluice.queue('a'), sluice.queue('b')]
  const seen: string[] = []
  const done = new Countdown(2)
  a.process('T', () => {
    seen.push('a')
    done.tick()
  })
  await untilIdle('a', 1)
  b.process('T', () => {
    seen.push('b')
    done.tick()
  })
  await untilIdle('b', 1)

  await b.submit({ type: 'T' })
  await a.submit({ type: 'T' })
  await done.reached

  expect(seen.sort()).toEqual(['a', 'b'])
})

it('runs on a Redis of its own where that is asked for', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-embedded-'))
  const sluice = new Sluice({ redis: 'embedded', dataDir })
  try {
    const queue = sluice.queue('q')
    const done = new Countdown(10)
    queue.process('T', () => done.tick())

    await queue.submit({ type: 'T', jobs: payloads(10) })
    await done.reached

    await until(async () => (await queue.counts()).succeeded === 10)
  } finally {
    await sluice.close()
    await stopEmbeddedServer({ dataDir })
    await rm(dataDir, { recursive: true, force: true })
  }
})

it('tells of more jobs at once than one script can carry', async () => {
  const queue = engine.queue({ maxRetries: 1 })
  const all = new Countdown(5_000)
  queue.process(
    'T',
    async (job) => {
      all.tick()
      await all.reached
      if (job.attempt === 1) throw new Error('all at once')
    },
    { concurrency: 5_000 },
  )

  await queue.submit({ type: 'T', jobs: payloads(5_000) })

  await until(async () => (await queue.counts()).succeeded === 5_000)
  expect(engine.log).toEqual([])
})
