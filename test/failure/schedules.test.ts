import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Queue, ScheduleView } from '../../src/index.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import type { Child } from './child.ts'
import { ProxiedQueue } from './proxied-queue.ts'
import type { ScheduleProcessMessage, ScheduleProcessSettings } from './schedule-process.ts'

const QUEUE = 'ticks'
const EVERY_MS = 250
const options = { leaseMs: 1_000 }
const schedules = { latest: 'one', every: 'all', skipping: 'skip' } as const
const names = Object.keys(schedules)

let proxied: ProxiedQueue<ScheduleProcessMessage>
let redis: TestRedis
let proxy: TcpProxy
let queue: Queue
let children: readonly Child<ScheduleProcessMessage>[]
let firsts: Map<string, number>

beforeEach(async () => {
  proxied = await ProxiedQueue.start(QUEUE, options)
  ;({ redis, proxy, queue, children } = proxied)
  firsts = new Map()
})

afterEach(() => proxied.stop())

/** A process that says at its start what it wants, like all the others. */
async function begin(): Promise<Child<ScheduleProcessMessage>> {
  const child = proxied.child('schedule-process.ts', {
    redis: proxy.url,
    queue: QUEUE,
    options,
    schedules,
    everyMs: EVERY_MS,
  } satisfies ScheduleProcessSettings)
  await child.heard((messages) => messages.some(({ is }) => is === 'ready'))
  return child
}

/** The schedules are made here first, so that their first ticks are known. */
async function make(): Promise<void> {
  for (const [name, missed] of Object.entries(schedules)) {
    const input = { every: EVERY_MS, missed, job: { type: 'TICK', tenant: name } }
    const { schedule } = await queue.schedules.set(name, input)
    firsts.set(name, schedule.nextAt ?? 0)
  }
}

async function ticked(count: number): Promise<void> {
  const reached = async () => (await views()).every(({ ticks }) => ticks >= count)
  await expect.poll(reached, { timeout: 60_000, interval: 50 }).toBe(true)
}

async function views(): Promise<ScheduleView[]> {
  return Promise.all(names.map(async (name) => (await queue.schedules.get(name)) as ScheduleView))
}

/** No more ticks; all jobs of those there were have run. Answers the ids that ran, each once, by schedule. */
async function ended(): Promise<Map<string, string[]>> {
  for (const name of names) await queue.schedules.pause(name)
  const left = async () => {
    const { waiting, delayed, running } = await queue.counts()
    return waiting + delayed + running
  }
  await expect.poll(left, { timeout: 60_000, interval: 50 }).toBe(0)
  const ids = new Set(
    children.flatMap(({ messages }) => messages.flatMap((each) => (each.is === 'ran' ? [each.id] : []))),
  )
  return new Map(names.map((name) => [name, [...ids].filter((id) => id.startsWith(`${name}@`)).sort()]))
}

/** One job for each tick that was counted, and every instant from the first to the last is counted, as met or as missed. */
async function expectOneJobPerTick(ran: Map<string, string[]>): Promise<ScheduleView[]> {
  const found = await views()
  for (const { name, ticks, missedTicks, lastAt } of found) {
    const ids = ran.get(name) ?? []
    const instants = ids.map((id) => Date.parse(id.slice(name.length + 1)))
    const passed = ((lastAt ?? 0) - (firsts.get(name) ?? 0)) / EVERY_MS + 1

    expect([name, ids.length]).toEqual([name, ticks])
    expect([name, ticks + missedTicks]).toEqual([name, passed])
    expect(instants.every((instant) => instant % EVERY_MS === 0)).toBe(true)
  }
  const { submitted, failed, canceled } = await queue.counts()
  expect([submitted, failed, canceled]).toEqual([found.reduce((sum, { ticks }) => sum + ticks, 0), 0, 0])
  return found
}

it('makes one job for each tick while processes are killed −9 and replies get lost', async () => {
  await make()
  await Promise.all([begin(), begin(), begin()])

  for (let round = 1; round <= 5; round++) {
    await ticked(5 * round)
    await children.find(({ hasEnded }) => !hasEnded)?.end('SIGKILL')
    proxy.cut()
    await begin()
  }
  await ticked(30)

  const found = await expectOneJobPerTick(await ended())
  expect(found.find(({ name }) => name === 'every')?.missedTicks).toBe(0)
})

it('counts what passes while Redis is away, and makes up for it as each schedule says', async () => {
  await make()
  await Promise.all([begin(), begin()])
  await ticked(4)

  await redis.kill('SIGKILL')
  // Time itself is the matter: ten ticks pass.
  await sleep(10 * EVERY_MS)
  await redis.restart()
  await ticked(10)

  const ran = await ended()
  const found = await expectOneJobPerTick(ran)
  const missed = new Map(found.map(({ name, missedTicks }) => [name, missedTicks]))
  expect(missed.get('every')).toBe(0)
  expect(missed.get('latest')).toBeGreaterThanOrEqual(8)
  expect(missed.get('skipping')).toBeGreaterThanOrEqual(8)
})

it('leaves no tick out while the only process is replaced, where all are made up for', async () => {
  await make()
  const only = await begin()
  await ticked(4)

  await only.end('SIGKILL')
  await begin()
  await ticked(10)

  const found = await expectOneJobPerTick(await ended())
  expect(found.find(({ name }) => name === 'every')?.missedTicks).toBe(0)
})
