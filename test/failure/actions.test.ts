import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Action, Queue, QueueEvent, QueueOptions } from '../../src/index.ts'
import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import type { ActionProcessMessage, ActionProcessSettings } from './action-process.ts'
import type { Child } from './child.ts'
import { ProxiedQueue } from './proxied-queue.ts'

const QUEUE = 'calls'
const options: QueueOptions = { leaseMs: 1_000 }

let proxied: ProxiedQueue<ActionProcessMessage>
let redis: TestRedis
let proxy: TcpProxy
let queue: Queue

beforeEach(async () => {
  proxied = await ProxiedQueue.start(QUEUE, options)
  ;({ redis, proxy, queue } = proxied)
})

afterEach(() => proxied.stop())

function begin(settings: Partial<ActionProcessSettings>): Child<ActionProcessMessage> {
  return proxied.child('action-process.ts', {
    redis: proxy.url,
    queue: QUEUE,
    options,
    role: 'work',
    count: 0,
    everyMs: 0,
    hangs: false,
    ...settings,
  } satisfies ActionProcessSettings)
}

async function worker(settings: Partial<ActionProcessSettings> = {}): Promise<Child<ActionProcessMessage>> {
  const child = begin(settings)
  await child.heard((messages) => messages.some(({ is }) => is === 'ready'))
  return child
}

async function done(action: Action, count: number): Promise<void> {
  const ended = async () => {
    const { succeeded, failed, canceled } = (await action.view())?.counts ?? { succeeded: 0, failed: 0, canceled: 0 }
    return succeeded + failed + canceled
  }
  await expect.poll(ended, { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(count)
}

/** All events of the queue up to its action's end, each transition once. */
async function transitions(): Promise<string[]> {
  const seen: QueueEvent[] = []
  // One more event after the end would show here: the marker comes after it.
  await queue.limits.change({ queue: '1000000/s' })
  for await (const event of queue.events({ from: '0' })) {
    if (event.type === 'limits.changed') break
    seen.push(event)
  }
  return seen.filter(({ type }) => type.startsWith('action.')).map(({ type }) => type)
}

async function resultsOf(action: Action): Promise<number[]> {
  const found: number[] = []
  for await (const { result } of action.results({ order: 'finish' })) found.push(result as number)
  return found.sort((a, b) => a - b)
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const exactly = (count: number) => ({
  total: count,
  waiting: 0,
  running: 0,
  delayed: 0,
  succeeded: count,
  failed: 0,
  canceled: 0,
})

describe('an action', () => {
  it('completes once, with exact counts, while workers are killed, scripts flushed, links cut and replies lost', async () => {
    const count = 4_000
    let workers = [await worker(), await worker()]
    const action = await queue.submit({
      tenant: 'a',
      type: 'CALL',
      keepResults: true,
      jobs: numbers(count).map((payload) => ({ payload })),
    })

    const losses = proxy.loseReplies({ every: 25 })
    for (let round = 1; round <= 4; round++) {
      await done(action, round * 600)
      const [victim, ...others] = workers as [Child<ActionProcessMessage>]
      await victim.end('SIGKILL')
      await redis.client().function('FLUSH')
      proxy.cut()
      workers = [...others, await worker()]
    }
    const summary = await action.finished({ timeoutMs: 60_000 })
    losses.stop()

    expect(losses.lost).toBeGreaterThan(5)
    expect(summary).toMatchObject({ state: 'COMPLETED', counts: exactly(count) })
    expect(await resultsOf(action)).toEqual(numbers(count))
    // Whether all of it has been received before the first job starts is a matter of chance.
    const certain = (await transitions()).filter((type) => type !== 'action.dispatched')
    expect(certain).toEqual(['action.created', 'action.running', 'action.aggregating', 'action.completed'])
  })

  it('completes once, with exact counts, over a Redis that is killed and restarted on its file', async () => {
    const count = 3_000
    await worker()
    await worker()
    const action = await queue.submit({
      tenant: 'a',
      type: 'CALL',
      jobs: numbers(count).map((payload) => ({ payload })),
    })

    await done(action, 500)
    await redis.kill()
    await redis.restart()
    await done(action, 1_500)
    await redis.kill()
    await redis.restart()
    const summary = await action.finished({ timeoutMs: 90_000 })

    expect(summary).toMatchObject({ state: 'COMPLETED', counts: { ...exactly(count) } })
    expect((await transitions()).filter((type) => type === 'action.completed')).toHaveLength(1)
  })

  it('is resumed after its producer was killed −9, and every job runs once', async () => {
    const count = 3_000
    await worker()
    const victim = begin({ role: 'produce', count, everyMs: 10 })
    await victim.heard((messages) => messages.some((message) => message.is === 'producing' && message.jobs >= 1_000))
    await victim.end('SIGKILL')
    const action = queue.action('x', { tenant: 'a' })
    const begun = await action.view()
    expect(begun).toMatchObject({ isSealed: false })
    expect(begun?.counts.total).toBeLessThan(count)

    const heir = begin({ role: 'produce', count })
    const messages = await heir.heard((heard) => heard.some(({ is }) => is === 'produced'))

    expect(messages.at(-1)).toEqual({ is: 'produced', accepted: count - (begun?.counts.total ?? 0) })
    expect((await action.finished({ timeoutMs: 60_000 })).counts).toEqual(exactly(count))
    expect(await resultsOf(action)).toEqual(numbers(count))
  })

  it('has its aggregate made by another process when the first is killed in the middle', async () => {
    const victim = await worker({ hangs: true })
    const action = await queue.submit({
      tenant: 'a',
      type: 'SUM',
      jobs: numbers(100).map((payload) => ({ payload })),
    })
    await victim.heard((messages) => messages.some(({ is }) => is === 'aggregating'))
    expect((await action.view())?.state).toBe('AGGREGATING')
    await victim.end('SIGKILL')

    await worker()

    expect(await action.finished({ timeoutMs: 90_000 })).toMatchObject({
      state: 'COMPLETED',
      aggregate: { sum: 4_950 },
    })
    expect((await transitions()).filter((type) => type === 'action.completed')).toHaveLength(1)
  })
})
