import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Sluice, type SluiceOptions } from '../../src/index.ts'
import { type ManualClock, manualClock, startRedis, type TestRedis } from '../../src/testing/index.ts'

let server: TestRedis
let clock: ManualClock
const open: Sluice[] = []

beforeEach(async () => {
  server = await startRedis()
  clock = manualClock()
})
afterEach(async () => {
  await clock.runUntil(Promise.all(open.splice(0).map((sluice) => sluice.close())))
  await server.stop()
})

function connect(options: Partial<SluiceOptions> = {}): Sluice {
  const sluice = new Sluice({ redis: server.path, clock, ...options })
  open.push(sluice)
  return sluice
}

describe('a Sluice by a manual clock', () => {
  it('runs what can run now while time stands still', async () => {
    const queue = connect().queue('mail')
    const ran: unknown[] = []
    queue.process('SEND', ({ payload }) => void ran.push(payload))
    await queue.submit({ type: 'SEND', payload: 1 })

    await clock.settle()

    expect(ran).toEqual([1])
    expect(await queue.counts()).toMatchObject({ waiting: 0, running: 0, succeeded: 1 })
  })

  it('comes to rest no sooner where the server has lost its functions', async () => {
    const queue = connect().queue('mail')
    await queue.submit({ type: 'SEND', payload: 1 })
    const ran: unknown[] = []
    const client = server.client()
    await client.call('FUNCTION', 'FLUSH')
    client.disconnect()
    queue.process('SEND', ({ payload }) => void ran.push(payload))

    await clock.settle()

    expect(ran).toEqual([1])
  })

  it('remembers the backlog of the last hour by the clock, and says of what moment an overview is', async () => {
    const queue = connect().queue('mail')
    await queue.submit({ type: 'SEND', jobs: [{}, {}, {}] })
    await queue.claim(1)
    await clock.advance(30_000)
    await queue.claim(1)
    await clock.settle()

    expect(await queue.congestion.history()).not.toEqual([])
    expect((await queue.overview()).at).toBe(clock.date())
    await clock.advance(2 * 3_600_000)
    expect(await queue.congestion.history()).toEqual([])
  })

  it('starts a delayed job at its instant and not before', async () => {
    const queue = connect().queue('mail')
    const ran: number[] = []
    queue.process('SEND', () => void ran.push(clock.date()))
    const submittedAt = clock.date()
    await queue.submit({ type: 'SEND', payload: 1, delayMs: 86_400_000 })

    await clock.advance(86_399_999)
    expect(ran).toEqual([])
    await clock.advance(1)

    expect(ran).toEqual([submittedAt + 86_400_000])
  })

  it('retries after the time that the job says, until it is a dead letter', async () => {
    const queue = connect().queue('mail', { maxRetries: 2 })
    const ran: number[] = []
    queue.process('SEND', () => {
      ran.push(clock.now())
      throw new Error('refused')
    })
    const { id } = await queue.submit({ type: 'SEND', payload: 1 })

    await clock.settle()
    const dueAt = (await queue.job(id))?.dueAt as number
    await clock.advanceTo(dueAt - 1)
    expect(ran).toHaveLength(1)
    await clock.advanceTo(dueAt)
    expect(ran).toHaveLength(2)
    await clock.advance(60_000)

    expect(ran).toHaveLength(3)
    expect(await queue.job(id)).toMatchObject({ state: 'failed', attempts: 3 })
  })

  it('grants a bucket by the clock, so that a limit is tested without waiting for it', async () => {
    const queue = connect().queue('mail', { limits: { queue: '10/min' } })
    const ran: number[] = []
    queue.process('SEND', () => void ran.push(clock.now()))
    await queue.submit({ type: 'SEND', jobs: Array.from({ length: 11 }, (_, payload) => ({ payload })) })

    await clock.advance(60_050)

    expect(ran).toHaveLength(11)
    expect((ran[10] as number) - (ran[0] as number)).toBeGreaterThanOrEqual(60_000)
  })

  it('opens a window when its hour begins', async () => {
    const queue = connect().queue('mail', { limits: { queue: { kind: 'window', limit: 2, windowMs: 3_600_000 } } })
    const ran: number[] = []
    queue.process('SEND', () => void ran.push(clock.now()))
    await queue.submit({ type: 'SEND', jobs: Array.from({ length: 3 }, (_, payload) => ({ payload })) })

    await clock.advance(3_599_999)
    expect(ran).toEqual([0, 0])
    await clock.advance(1)

    expect(ran).toEqual([0, 0, 3_600_000])
  })

  it('ends a job that takes too long, and renews the lease of one that may', async () => {
    const queue = connect().queue('mail', { maxRetries: 0, leaseMs: 15_000 })
    let reason: unknown
    queue.process('HANG', (_, { signal }) => clock.sleep(40_000).finally(() => (reason = signal.reason)))
    queue.process('LONG', () => clock.sleep(40_000), { timeoutMs: 60_000 })
    const hung = await queue.submit({ type: 'HANG', payload: 1 })
    const long = await queue.submit({ type: 'LONG', payload: 1 })

    await clock.advance(40_000)

    expect(reason).toMatchObject({ code: 'SLUICE_JOB_TIMEOUT' })
    expect(await queue.job(hung.id)).toMatchObject({ state: 'failed', error: { name: 'JobTimeoutError' } })
    expect(await queue.job(long.id)).toMatchObject({ state: 'succeeded' })
  })

  it('ticks a schedule for every instant that passes', async () => {
    const queue = connect().queue('reports')
    const ran: string[] = []
    queue.process('DAILY', () => void ran.push(new Date(clock.date()).toISOString()))
    await queue.schedules.set('daily', { cron: '0 3 * * *', timeZone: 'Europe/Berlin', job: { type: 'DAILY' } })

    await clock.advance(2 * 86_400_000)

    expect(ran).toEqual(['2026-01-01T02:00:00.000Z', '2026-01-02T02:00:00.000Z'])
  })

  it('wakes a worker that has been idle for a day', async () => {
    const queue = connect().queue('mail')
    const ran: unknown[] = []
    queue.process('SEND', ({ payload }) => void ran.push(payload))
    await clock.advance(86_400_000)

    await queue.submit({ type: 'SEND', payload: 1 })
    await clock.settle()

    expect(ran).toEqual([1])
  })

  it('is shared by two processes, of which the one that has time takes what the other had to leave', async () => {
    const [first, second] = [connect().queue('mail'), connect().queue('mail')]
    const ran: string[] = []
    for (const [name, queue] of Object.entries({ first, second })) {
      queue.process('SEND', () => clock.sleep(1_000).then(() => ran.push(`${name} ${clock.now()}`)), { concurrency: 1 })
    }
    await first.submit({
      type: 'SEND',
      jobs: [
        { payload: 1, delayMs: 5_000 },
        { payload: 2, delayMs: 5_000 },
      ],
    })

    await clock.advance(6_000)

    expect(ran.sort()).toEqual(['first 6000', 'second 6000'])
  })

  it('stamps jobs and results with its time', async () => {
    const queue = connect().queue('mail')
    queue.process('SEND', ({ createdAt }) => createdAt)
    const action = await queue.submit({
      tenant: 'a',
      type: 'SEND',
      keepResults: true,
      jobs: [{ payload: 1, delayMs: 250 }],
    })

    const summary = await clock.runUntil(action.finished())

    expect(summary).toMatchObject({ state: 'COMPLETED', firstStartAt: clock.date(), lastEndAt: clock.date() })
    for await (const result of action.results()) {
      expect(result).toMatchObject({ result: clock.date() - 250, endedAt: clock.date(), durationMs: 0 })
    }
  })
})

describe('a manual clock', () => {
  it('says that what it was to run to did not happen in time', async () => {
    clock.setTimer(() => {}, 10_000)

    await expect(clock.runUntil(new Promise(() => {}), { maxMs: 9_999 })).rejects.toThrow('within 9999 ms of the clock')
  })

  it('passes on how the promise it ran to has ended', async () => {
    await expect(clock.runUntil(clock.sleep(10).then(() => 'slept'))).resolves.toBe('slept')
    await expect(clock.runUntil(Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(clock.now()).toBe(10)
  })

  it('calls timers in the order of their instants, each at its own', async () => {
    const calls: string[] = []
    const note = (name: string) => () => void calls.push(`${name} ${clock.now()}`)
    clock.setTimer(note('second'), 20)
    clock.setTimer(() => clock.setTimer(note('set by the first'), 5), 10)
    clock.setTimer(note('too late'), 31)
    clock.setTimer(note('canceled'), 15)()

    await clock.advance(30)

    expect(calls).toEqual(['set by the first 15', 'second 20'])
    expect(clock.now()).toBe(30)
  })

  it('is at an instant exactly when it was moved to it, with fractions too', async () => {
    const calls: number[] = []
    for (let at = 1; at <= 50; at++) {
      const waitMs = (100 + 143 * at) / 1_000
      const dueAt = clock.date() + waitMs
      const cancel = clock.setTimer(() => calls.push(at), waitMs)
      await clock.advanceTo(dueAt)
      cancel()
    }

    expect(calls).toHaveLength(50)
  })

  it('goes forward only', async () => {
    expect(() => clock.advance(-1)).toThrow('not by -1')
    expect(() => clock.advanceTo(Number.NaN)).toThrow('not to NaN')
    await clock.advanceTo(clock.date() - 1)

    expect(clock.now()).toBe(0)
  })

  it('starts when it is told to', () => {
    expect(manualClock({ start: new Date('2026-03-29T00:59:59Z') }).date()).toBe(Date.UTC(2026, 2, 29, 0, 59, 59))
    expect(() => manualClock({ start: new Date('nonsense') })).toThrow('start must be a date')
  })
})

it('nothing else is taken for a clock', () => {
  expect(() => new Sluice({ redis: server.path, clock: { now: () => 0 } as never })).toThrow(
    'clock must be a clock of sluice/testing, manualClock(), not an object',
  )
})
