import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { InvalidOptionsError, LeaseLostError, PermanentError, Sluice, ThrottledError } from '../../src/index.ts'
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
