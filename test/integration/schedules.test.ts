import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Queue, QueueEvent, ScheduleInput } from '../../src/index.ts'
import { Countdown } from '../support/countdown.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const job = { type: 'REPORT', tenant: 'acme', payload: { big: true } }
const daily = { cron: '0 3 * * *', timeZone: 'Europe/Berlin', job }

/** Ids of the jobs that a process of its own runs, in their order, and a promise for so many of them. */
function collect(queue: Queue, count: number): { ids: string[]; enough: Promise<void> } {
  const ids: string[] = []
  const countdown = new Countdown(count)
  queue.process('REPORT', async ({ id }) => {
    ids.push(id)
    countdown.tick()
  })
  return { ids, enough: countdown.reached }
}

/** Puts the next tick of a schedule so far back, as an outage of that length does. */
async function missTicks(name: string, ms: number): Promise<void> {
  const key = `${engine.prefix}:{q}:q:`
  const client = engine.server.client()
  const due = String(Number(await client.hget(`${key}schedule:${name}`, 'due')) - ms * 1_000)
  await client.hset(`${key}schedule:${name}`, 'due', due)
  await client.zadd(`${key}schedules`, due, name)
  await client.zadd(`${key}duties`, due, 'tick')
  client.disconnect()
}

async function missedEventsOf(queue: Queue, count: number): Promise<QueueEvent[]> {
  const found: QueueEvent[] = []
  const signal = AbortSignal.timeout(10_000)
  for await (const event of queue.events({ from: '0', signal })) {
    if (event.type === 'schedule.missed' && found.push(event) === count) break
  }
  return found
}

describe('a schedule', () => {
  it('makes jobs that cost what it says', async () => {
    const queue = engine.queue()
    const cost = withResolvers<number>()
    queue.process('REPORT', (job) => cost.resolve(job.cost))

    await queue.schedules.set('dear', { every: 100, job: { ...job, cost: 5 } })

    expect(await cost.promise).toBe(5)
    await queue.schedules.remove('dear')
  })

  it('is refused when its jobs cost more than a limit could ever grant, and changes nothing', async () => {
    const queue = engine.queue({ limits: { queue: '100/s', levels: { low: '20/s' }, tenant: '50/s' } })
    await queue.tenant('b').setLimits({ tenant: '10/s' })
    const set = (job: Partial<ScheduleInput['job']>) =>
      queue.schedules.set('dear', { every: '1h', job: { type: 'T', ...job } })

    await expect(set({ cost: 51 })).rejects.toThrow(
      'job.cost is 51, more than the limit "tenant" could ever grant (50)',
    )
    await expect(set({ cost: 21, level: 'low' })).rejects.toThrow('"low"')
    await expect(set({ cost: 11, tenant: 'b' })).rejects.toThrow('(10)')
    expect(await queue.schedules.get('dear')).toBeUndefined()

    await set({ cost: 50 })
    expect(await queue.schedules.get('dear')).toMatchObject({ job: { cost: 50 } })
  })

  it('is shown with its next tick', async () => {
    const queue = engine.queue()

    const { result, schedule } = await queue.schedules.set('nightly', daily)

    expect(result).toBe('created')
    expect(schedule).toEqual({
      name: 'nightly',
      cron: '0 3 * * *',
      timeZone: 'Europe/Berlin',
      missed: 'one',
      job,
      nextAt: expect.any(Number),
      lastAt: undefined,
      pausedSince: undefined,
      ticks: 0,
      missedTicks: 0,
    })
    const local = new Date(schedule.nextAt ?? 0).toLocaleTimeString('en-GB', { timeZone: 'Europe/Berlin' })
    expect(local).toBe('03:00:00')
    expect(await queue.schedules.get('nightly')).toEqual(schedule)
  })

  it('goes on as it was when a process says the same again', async () => {
    const first = await engine.queue().schedules.set('often', { every: '1h', anchor: 1, job })

    const again = await engine.queue().schedules.set('often', { every: 3_600_000, anchor: 1, job })

    expect(again).toEqual({ result: 'unchanged', schedule: first.schedule })
  })

  it('refuses what cannot be, and changes nothing', async () => {
    const queue = engine.queue()

    await expect(queue.schedules.set('x', { cron: '0 99 * * *', job })).rejects.toThrow(
      'Invalid options for schedule "x": cron cannot be understood',
    )
    await expect(queue.schedules.set('', daily)).rejects.toThrow('name must have')
    expect(await queue.schedules.list()).toMatchObject({ total: 0 })
  })

  it('is gone when it is removed, and unknown from then on', async () => {
    const queue = engine.queue()
    await queue.schedules.set('nightly', daily)

    expect([await queue.schedules.remove('nightly'), await queue.schedules.remove('nightly')]).toEqual([true, false])
    expect(await queue.schedules.get('nightly')).toBeUndefined()
    for (const act of ['pause', 'resume', 'runNow'] as const) {
      await expect(queue.schedules[act]('nightly')).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_SCHEDULE' })
    }
  })
})

describe('ticks', () => {
  it('make one job each, whatever the number of processes', async () => {
    const processes = Array.from({ length: 4 }, () => engine.queue())
    const runs = processes.map((queue) => collect(queue, 1))
    const maker = engine.queue()

    for (const queue of processes) await queue.schedules.set('often', { every: 200, job })
    await expect.poll(async () => (await maker.schedules.get('often'))?.ticks, { timeout: 10_000 }).toBeGreaterThan(8)
    const { ticks } = (await maker.schedules.get('often')) ?? {}
    await maker.schedules.remove('often')
    await maker.drain()

    const ids = runs.flatMap((run) => run.ids).sort()
    const instants = ids.map((id) => Date.parse(id.replace('often@', '')))
    expect(new Set(ids).size).toBe(ids.length)
    expect(instants.every((instant) => instant % 200 === 0)).toBe(true)
    expect(ids.length).toBeGreaterThanOrEqual(ticks ?? Number.NaN)
    expect((await maker.counts()).submitted).toBe(ids.length)
  })

  it('come in time in an idle process, whoever made the schedule', async () => {
    const worker = engine.queue()
    const lateness: number[] = []
    const countdown = new Countdown(5)
    worker.process('REPORT', async ({ id }) => {
      lateness.push(Date.now() - Date.parse(id.replace('often@', '')))
      countdown.tick()
    })
    const maker = engine.queue()

    await maker.schedules.set('often', { every: 300, job })
    await countdown.reached

    // A heartbeat would be seconds late. One of five: the machine is shared.
    expect(Math.min(...lateness)).toBeLessThan(100)
  })

  it('come also while all hands are busy', async () => {
    const queue = engine.queue()
    let release: () => void = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    queue.process('REPORT', () => released, { concurrency: 1 })
    await queue.schedules.set('often', { every: 200, job })

    await expect.poll(async () => (await queue.schedules.get('often'))?.ticks, { timeout: 10_000 }).toBeGreaterThan(4)
    const busy = await queue.counts()
    await queue.schedules.remove('often')
    release()

    expect(busy.running).toBe(1)
    expect(busy.waiting).toBeGreaterThanOrEqual(4)
  })

  it('give the job its id, and all that the schedule says of it', async () => {
    const queue = engine.queue()
    const { schedule } = await queue.schedules.set('some day', {
      every: '1d',
      job: { ...job, level: 'high', lane: 'x' },
    })
    await missTicks('some%20day', 86_400_000)

    const { ids, enough } = collect(queue, 1)
    await enough

    const id = `some day@${new Date((schedule.nextAt ?? 0) - 86_400_000).toISOString()}`
    expect(ids).toEqual([id])
    expect(await queue.job(id, { tenant: 'acme' })).toMatchObject({ id, tenant: 'acme', level: 'high', lane: 'x' })
  })
})

describe('a change', () => {
  it('takes effect at once', async () => {
    const queue = engine.queue()
    const { enough } = collect(queue, 1)
    await queue.schedules.set('report', { every: '1d', job })

    const { result } = await queue.schedules.set('report', { every: 100, job })
    await enough

    expect(result).toBe('changed')
    await queue.schedules.remove('report')
  })

  it('keeps ticks due that nobody met yet, where the job or the rule for missed ones is another', async () => {
    const queue = engine.queue()
    const hourly = { every: '1h', anchor: Date.now() - 1_800_000, job }
    await queue.schedules.set('hourly', hourly)
    await missTicks('hourly', 5 * 3_600_000)

    const { result, schedule } = await queue.schedules.set('hourly', {
      ...hourly,
      missed: 'all',
      job: { ...job, payload: 'new' },
    })
    const { ids, enough } = collect(queue, 5)
    await enough

    expect(result).toBe('changed')
    expect(ids[0]).toBe(`hourly@${new Date(schedule.nextAt ?? 0).toISOString()}`)
    expect(await queue.schedules.get('hourly')).toMatchObject({ ticks: 5, missedTicks: 0 })
  })

  it('counts ticks as missed that nobody met, where it is due at other instants', async () => {
    const queue = engine.queue()
    await queue.schedules.set('report', { every: '1h', anchor: Date.now() - 1_800_000, job })
    await missTicks('report', 5 * 3_600_000)

    const { schedule } = await queue.schedules.set('report', { ...daily, missed: 'all' })

    expect(schedule).toMatchObject({ ticks: 0, missedTicks: 5 })
    expect(schedule.nextAt).toBeGreaterThan(Date.now())
    expect(await missedEventsOf(queue, 1)).toMatchObject([{ schedule: 'report', tenant: 'acme', missed: 5 }])
  })

  it('counts nothing as missed of a schedule that is paused', async () => {
    const queue = engine.queue()
    await queue.schedules.set('report', { every: '1h', anchor: Date.now() - 1_800_000, job })
    await queue.schedules.pause('report')
    await missTicks('report', 5 * 3_600_000)

    const { schedule } = await queue.schedules.set('report', daily)

    expect(schedule).toMatchObject({ missedTicks: 0, nextAt: undefined })
  })

  it('is taken from each of many processes at once', async () => {
    const processes = Array.from({ length: 8 }, () => engine.queue())
    await Promise.all(processes.map((queue) => queue.counts()))

    const set = (queue: Queue, payload: number) =>
      queue.schedules.set('report', { every: '1h', job: { ...job, payload } })
    const changes = await Promise.all(processes.map(set))

    const results = changes.map(({ result }) => result).sort()
    expect(results).toEqual([...Array.from({ length: 7 }, () => 'changed'), 'created'])
  })

  it('keeps a paused schedule from ticking until it is resumed, and nothing is missed', async () => {
    const queue = engine.queue()
    const { ids, enough } = collect(queue, 1)
    await queue.schedules.set('report', { every: 1_000, anchor: Date.now() - 400, job })
    await queue.schedules.pause('report')

    const paused = await queue.schedules.get('report')
    await sleep(1_200)
    expect([paused?.nextAt, ids]).toEqual([undefined, []])
    expect(paused?.pausedSince).toBeGreaterThan(0)
    await queue.schedules.resume('report')
    await enough

    expect(await queue.schedules.get('report')).toMatchObject({ missedTicks: 0, pausedSince: undefined })
    await queue.schedules.remove('report')
  })

  it('runs one at once, besides its ticks', async () => {
    const queue = engine.queue()
    const { ids, enough } = collect(queue, 2)
    await queue.schedules.set('nightly', daily)

    const made = [await queue.schedules.runNow('nightly'), await queue.schedules.runNow('nightly')]
    await enough

    expect(ids.sort()).toEqual(made.map(({ id }) => id).sort())
    expect(ids.every((id) => id.startsWith('nightly@'))).toBe(true)
    expect(await queue.schedules.get('nightly')).toMatchObject({ ticks: 0 })
  })
})

describe('missed ticks', () => {
  async function afterOutage(missed: 'one' | 'all' | 'skip') {
    const queue = engine.queue()
    await queue.schedules.set('hourly', { every: '1h', anchor: Date.now() - 1_800_000, missed, job })
    await missTicks('hourly', 5 * 3_600_000)
    const told = () => missedEventsOf(queue, 1)
    const run = collect(queue, missed === 'all' ? 5 : 1)
    return { queue, run, told }
  }

  it('are made up for once, by the latest, and told', async () => {
    const { queue, run, told } = await afterOutage('one')
    await run.enough

    const [event] = await told()
    expect(event).toMatchObject({ schedule: 'hourly', tenant: 'acme', missed: 4 })
    expect(await queue.schedules.get('hourly')).toMatchObject({ ticks: 1, missedTicks: 4 })
  })

  it('are all made up for, oldest first, where the schedule says so', async () => {
    const { queue, run } = await afterOutage('all')
    await run.enough

    expect(run.ids).toEqual(run.ids.toSorted())
    expect(await queue.schedules.get('hourly')).toMatchObject({ ticks: 5, missedTicks: 0 })
  })

  it('are only counted, where the schedule says so', async () => {
    const { queue, run, told } = await afterOutage('skip')

    expect(await told()).toMatchObject([{ missed: 5 }])
    expect(run.ids).toEqual([])
    expect(await queue.schedules.get('hourly')).toMatchObject({ ticks: 0, missedTicks: 5 })
  })
})

describe('a full queue', () => {
  it('lets a tick wait for room', async () => {
    const queue = engine.queue({ maxPending: 1 })
    await queue.submit({ type: 'OTHER', tenant: 'acme' })
    await queue.schedules.set('often', { every: '1h', job })
    await missTicks('often', 3_600_000)
    const [other] = await queue.claim(1)
    await queue.submit({ type: 'OTHER', tenant: 'acme' })

    await expect.poll(() => engine.log.map(({ event }) => event), { timeout: 10_000 }).toContain('schedules.full')
    await other?.succeed()
    const [second] = await queue.claim(1)
    await second?.succeed()
    const { enough } = collect(queue, 1)
    await enough

    expect(await queue.schedules.get('often')).toMatchObject({ ticks: 1, missedTicks: 0 })
  })
})

describe('an emptied Redis', () => {
  it('gets the schedules of a process again', async () => {
    const queue = engine.queue()
    await queue.schedules.set('nightly', daily)
    await queue.schedules.set('weekly', { cron: '@weekly', job })
    await queue.schedules.remove('weekly')
    const client = engine.server.client()
    await client.flushall()
    client.disconnect()

    await queue.counts()

    const names = async () => (await queue.schedules.list()).schedules.map(({ name }) => name)
    await expect.poll(names, { timeout: 20_000 }).toEqual(['nightly'])
  })
})

describe('a schedule that Redis has lost but for its name', () => {
  async function lose(name: string): Promise<void> {
    const client = engine.server.client()
    expect(await client.del(`${engine.prefix}:{q}:q:schedule:${name}`)).toBe(1)
    client.disconnect()
  }

  it('keeps no other from ticking, and is told of', async () => {
    const queue = engine.queue()
    await queue.schedules.set('a lost one', { every: '1h', job })
    await queue.schedules.set('kept', { every: '1h', job })
    for (const name of ['a%20lost%20one', 'kept']) await missTicks(name, 3_600_000)
    await lose('a%20lost%20one')

    const { ids, enough } = collect(queue, 1)
    await enough

    expect(ids).toEqual([expect.stringMatching(/^kept@/)])
    expect(engine.log).toMatchObject([{ event: 'schedule.gone', message: expect.stringContaining('"a lost one"') }])
    expect(await queue.schedules.list()).toMatchObject({ total: 1 })
  })

  it('is not listed, and can be made anew', async () => {
    const queue = engine.queue()
    for (const name of ['lost', 'kept']) await queue.schedules.set(name, { every: '1h', job })
    await lose('lost')

    const { schedules } = await queue.schedules.list()
    const { result } = await queue.schedules.set('lost', { every: '1h', job })

    expect(schedules.map(({ name }) => name)).toEqual(['kept'])
    expect(result).toBe('created')
  })
})

describe('the list', () => {
  it('goes by when schedules are due, in pages, and counts what is due soon', async () => {
    const queue = engine.queue()
    const names = Array.from({ length: 7 }, (_, index) => `tenant ${index}`)
    for (const name of names) await queue.schedules.set(name, { every: '1h', anchor: Date.now() - 1, job })
    await queue.schedules.set('soon', { every: '1h', anchor: Date.now() + 30_000, job })
    await queue.schedules.pause('tenant 0')

    const all: string[] = []
    let cursor: string | undefined
    do {
      const page = await queue.schedules.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
      all.push(...page.schedules.map(({ name }) => name))
      expect(page).toMatchObject({ total: 8, dueSoon: 1 })
      cursor = page.cursor
    } while (cursor !== undefined)
    const soon = await queue.schedules.list({ dueWithinMs: 45_000 })

    expect(all[0]).toBe('soon')
    expect(all.at(-1)).toBe('tenant 0')
    expect(all.toSorted()).toEqual(['soon', ...names])
    expect(soon.schedules.map(({ name }) => name)).toEqual(['soon'])
    expect(soon.nextAt).toBe(soon.schedules[0]?.nextAt)
  })
})
