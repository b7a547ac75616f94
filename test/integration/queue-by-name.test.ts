import { describe, expect, it } from 'vitest'
import type { Queue } from '../../src/index.ts'
import { keyPrefix } from '../../src/store/keys.ts'
import { all } from '../support/all.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'
import { ownProcess } from './own-process.ts'

const engine = useEngine()

/** A queue under a shared limit, made by a process of its own. */
async function queueInGroup(): Promise<Queue> {
  const sluice = engine.sluice()
  const github = sluice.limit('github', '500/s')
  const queue = sluice.queue('q', { limits: { github } })
  await queue.counts()
  return queue
}

/** The queue as a process has it that only knows its name, and never looks for work that it was not woken for. */
function byNameWithoutHeartbeats(): Queue {
  return ownProcess(engine, { heartbeatMs: 3_600_000 })('q')
}

/** Until a process waits to be woken for the queue. */
async function untilIdle(): Promise<void> {
  const client = engine.server.client()
  await until(async () => (await client.zcard(`${keyPrefix(engine.prefix, 'q', 'github')}idle`)) === 1)
}

describe('a process that gives no limits, in a queue that lives in a group', () => {
  it('is woken for work, and its job is told that it is cancelled', async () => {
    const queue = await queueInGroup()
    const [started, aborted] = [withResolvers<void>(), withResolvers<unknown>()]
    byNameWithoutHeartbeats().process('T', async (_, { signal }) => {
      started.resolve()
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      aborted.resolve(signal.reason)
    })
    await untilIdle()

    const { id } = await queue.submit({ type: 'T' })
    await started.promise
    const reply = await queue.cancel(id)

    expect(reply).toBe('canceling')
    expect(await aborted.promise).toMatchObject({ message: 'the job was cancelled' })
  })

  it('is told to make an aggregate that only it has', async () => {
    const queue = await queueInGroup()
    await byNameWithoutHeartbeats().aggregate('T', () => 'made')
    queue.process('T', () => {})

    const action = await queue.submit({ tenant: 'a', type: 'T', jobs: [{}] })

    expect(await action.finished()).toMatchObject({ state: 'COMPLETED', aggregate: 'made' })
  })

  it('follows an action that others run', async () => {
    const queue = await queueInGroup()
    const started = withResolvers<void>()
    const mayEnd = withResolvers<void>()
    queue.process('T', async () => {
      started.resolve()
      await mayEnd.promise
    })
    await queue.submit({ tenant: 'a', action: 'x', type: 'T', jobs: [{}] })
    await started.promise

    const finished = byNameWithoutHeartbeats().action('x', { tenant: 'a' }).finished()
    mayEnd.resolve()

    expect(await finished).toMatchObject({ state: 'COMPLETED' })
  })
})

describe('the first call of such a process reaches the queue in its group', () => {
  const calls: Record<string, { call: (byName: Queue) => Promise<unknown>; answers: unknown }> = {
    submit: {
      call: async (byName) => {
        await byName.submit({ type: 'T' })
        return (await byName.counts()).waiting
      },
      answers: 2,
    },
    claim: { call: async (byName) => (await byName.claim(1)).map(({ id }) => id), answers: ['one'] },
    job: { call: async (byName) => (await byName.job('one', { tenant: 'a' }))?.state, answers: 'waiting' },
    cancel: { call: (byName) => byName.cancel('one', { tenant: 'a' }), answers: 'canceled' },
    events: {
      call: async (byName) => (await all(byName.events({ from: '0', follow: false }))).map(({ type }) => type),
      answers: ['limits.changed'],
    },
    tenants: { call: async (byName) => (await all(byName.tenants())).map(({ tenant }) => tenant), answers: ['a'] },
    'tenant.view': { call: async (byName) => (await byName.tenant('a').view()).waiting, answers: 1 },
    'tenant.set': {
      call: async (byName) => {
        await byName.tenant('a').set({ weight: 3 })
        return (await byName.tenant('a').view()).weight
      },
      answers: 3,
    },
    'limits.list': {
      call: async (byName) => (await byName.limits.list()).map(({ name }) => name),
      answers: ['github', 'queue'],
    },
    'limits.acquire': { call: async (byName) => (await byName.limits.acquire(['github'])).granted, answers: true },
    overview: {
      call: async (byName) => (await byName.overview()).limits.map(({ name }) => name),
      answers: ['github', 'queue'],
    },
  }

  it.each(Object.entries(calls))('%s', async (_, { call, answers }) => {
    const queue = await queueInGroup()
    await queue.submit({ tenant: 'a', id: 'one', type: 'T' })
    await queue.limits.change({ queue: '700/s' })

    const answered = await call(engine.sluice().queue('q'))

    expect(answered).toEqual(answers)
    expect(await engine.server.client().keys(`${keyPrefix(engine.prefix, 'q')}*`)).toEqual([])
  })
})

describe('limits.change in such a process', () => {
  it('puts the queue under another limit of its group, also as the first call', async () => {
    await queueInGroup()
    const sluice = engine.sluice()
    const search = sluice.limit('search', '30/m', { group: 'github' })
    const byName = sluice.queue('q')

    await byName.limits.change({ search })

    expect(await byName.limits.status('search')).toMatchObject({ limit: 30 })
  })

  it('refuses a limit of another group, with both groups', async () => {
    await queueInGroup()
    const sluice = engine.sluice()
    const gitlab = sluice.limit('gitlab', '30/m')

    await expect(sluice.queue('q').limits.change({ gitlab })).rejects.toThrow(
      'gitlab is of group "gitlab", the queue of "github": attach it where the queue is made',
    )
  })
})
