import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ActionProgress, QueueEvent } from '../../src/index.ts'
import { all } from '../support/all.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

describe('progress', () => {
  it('comes as things change, at most ten times a second, and ends with the action', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(60) })
    const seen: { at: number; progress: ActionProgress }[] = []
    const watching = (async () => {
      for await (const progress of action.progress()) seen.push({ at: performance.now(), progress })
    })()

    queue.process('T', () => pause(20), { concurrency: 1 })
    await watching

    const done = seen.map(({ progress }) => progress.done)
    expect(done[0]).toBe(0)
    expect(done.at(-1)).toBe(60)
    expect(done).toEqual([...done].sort((a, b) => a - b))
    expect(seen.length).toBeGreaterThan(3)
    for (const [at, { at: moment }] of seen.entries()) {
      if (at > 0) expect(moment - (seen[at - 1]?.at ?? 0)).toBeGreaterThan(95)
    }
    expect(seen.at(-1)?.progress).toMatchObject({ state: 'COMPLETED', total: 60, etaMs: 0, congestion: 'NONE' })
  })

  it('stops with its signal, and waiting with its time-out', async () => {
    const queue = engine.queue()
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })

    await expect(all(action.progress({ signal: AbortSignal.timeout(50) }))).rejects.toMatchObject({
      name: 'TimeoutError',
    })
    await expect(action.finished({ timeoutMs: 50 })).rejects.toMatchObject({ code: 'SLUICE_WAITED_TOO_LONG' })
  })

  it('is heard of a second queue as soon as of the first, in a process that only waits', async () => {
    const [waiting, working] = [engine.sluice(), engine.sluice()]
    for (const name of ['first', 'second']) {
      const go = withResolvers<void>()
      working.queue(name).process('T', () => go.promise)
      const action = await waiting.queue(name).submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
      await until(async () => (await action.view())?.counts.running === 1)
      // A block of the process's one read takes longer.
      const progress = action.progress({ signal: AbortSignal.timeout(8_000) })
      expect((await progress.next()).value).toMatchObject({ running: 1 })
      const rest = all(progress)
      // It looks once more after a step of 100 ms, and only then waits to be told.
      await pause(300)

      go.resolve()

      expect((await rest).at(-1)).toMatchObject({ state: 'COMPLETED' })
    }
  })

  it('ends with an error for whoever waits when the process closes', async () => {
    const sluice = engine.sluice()
    const queue = sluice.queue('q')
    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: payloads(1) })
    const progress = action.progress()
    await progress.next()
    const events = queue.events()
    const waiting = [action.finished(), progress.next(), events.next()].map((promise) =>
      expect(promise).rejects.toMatchObject({ code: 'SLUICE_CLOSED' }),
    )
    // They wait by now: what they read before is read.
    const client = engine.server.client()
    await until(async () => / flags=\w*b\w* .* cmd=xread/.test((await client.call('CLIENT', 'LIST')) as string))

    await sluice.close()

    await Promise.all(waiting)
  })
})

describe('events', () => {
  it('tell each transition once, and go on from where they were left', async () => {
    const queue = engine.queue({ maxRetries: 1 })
    queue.process('T', (job) => {
      if (job.payload === 1) throw new Error('one')
    })
    const action = await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: [{ payload: 1 }] })
    await until(async () => (await action.view())?.counts.failed === 1)
    await action.seal()
    await action.finished()

    const seen: QueueEvent[] = []
    for await (const event of queue.events({ from: '0' })) {
      seen.push(event)
      if (event.type === 'action.completed') break
    }
    const rest: QueueEvent[] = []
    for await (const event of queue.events({ from: seen[2]?.id as string })) {
      rest.push(event)
      if (event.type === 'action.completed') break
    }

    expect(seen.map(({ type }) => type)).toEqual([
      'action.created',
      'action.running',
      'job.failed',
      'job.dead',
      'action.aggregating',
      'action.completed',
    ])
    expect(seen[2]).toMatchObject({ tenant: 'a', action: 'x', reason: 'one' })
    expect(rest).toEqual(seen.slice(3))
  })

  it('go on when the connection was lost', async () => {
    const queue = engine.queue()
    const events = queue.events({ from: '0' })
    await queue.submit({ tenant: 'a', action: 'x', type: 'T', seal: false, jobs: [] })
    expect((await events.next()).value).toMatchObject({ type: 'action.created', action: 'x' })
    const next = events.next()

    await engine.server.client().call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await queue.submit({ tenant: 'a', action: 'y', type: 'T', seal: false, jobs: [] })

    expect((await next).value).toMatchObject({ type: 'action.created', action: 'y' })
    await events.return()
  })

  it('reach all who follow in one process over one connection, whether they come early, late or read slowly', async () => {
    const queue = engine.queue()
    const client = engine.server.client()
    const blocked = async () => {
      const clients = (await client.call('CLIENT', 'LIST')) as string
      return clients.match(/ flags=\w*b\w* .* cmd=xread/g)?.length ?? 0
    }
    const open = (action: string) => queue.submit({ tenant: 'a', action, type: 'T', seal: false, jobs: [] })
    const names = async (events: AsyncIterable<QueueEvent>, count: number) => {
      const found: (string | undefined)[] = []
      for await (const { action } of events) if (found.push(action) === count) break
      return found
    }

    const early = names(queue.events({ from: '0' }), 3)
    const others = Array.from({ length: 20 }, () => names(queue.events({ from: '0' }), 3))
    await until(async () => (await blocked()) === 1)
    await open('x')
    const slow = queue.events({ from: '0' })
    await slow.next()
    await open('y')
    const late = names(queue.events({ from: '0' }), 3)
    await until(async () => (await blocked()) === 1)
    await open('z')

    expect(await Promise.all([early, late, ...others])).toEqual(Array.from({ length: 22 }, () => ['x', 'y', 'z']))
    expect(await names(slow, 2)).toEqual(['y', 'z'])
    await until(async () => (await blocked()) === 0)
  })

  it('that are more than are kept in memory reach a slow reader all the same', async () => {
    const queue = engine.queue()
    const events = queue.events({ from: '0' })
    const fast = queue.events({ from: '0' })
    await queue.submit({ tenant: 'a', action: 'first', type: 'T', jobs: [] })
    await events.next()
    const count = 1_200

    for (let n = 0; n < count; n++) await queue.limits.change({ queue: `${n + 1}/s` })
    for (let n = 0; n < count; n++) await fast.next()

    for (let n = 0; n < 3; n++) await events.next()
    for (let n = 0; n < count; n++) expect((await events.next()).value).toMatchObject({ type: 'limits.changed' })
    await Promise.all([events.return(), fast.return()])
  })
})
