import { describe, expect, it, onTestFinished } from 'vitest'
import { observeQueue, Sluice } from '../../src/sluice.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

/** A look from another process, which knows nothing but the name. */
function observed(name = 'q') {
  const sluice = new Sluice({ redis: { path: engine.server.path }, prefix: engine.prefix, log: () => {} })
  onTestFinished(() => sluice.close())
  return observeQueue(sluice, name)
}

describe('an overview', () => {
  it('shows counts, limits and tenants: who has longest to wait first, then who runs or is paused', async () => {
    const queue = engine.queue({ limits: { queue: '5/s' } })
    await queue.submit({ jobs: Array.from({ length: 30 }, () => ({ type: 'T', tenant: 'huge' })) })
    await queue.submit({ type: 'T', tenant: 'small' })
    await queue.tenant('quiet').pause()

    const overview = await queue.overview()

    expect(overview).toMatchObject({
      name: 'q',
      paused: false,
      levelsPaused: { high: false, normal: false, low: false },
      counts: { waiting: 31, submitted: 31 },
      backlog: { waiting: 31, activeTenants: 2 },
      limits: [{ name: 'queue', limit: 5 }],
      workers: [],
    })
    expect(overview.tenants).toMatchObject([
      { tenant: 'huge', state: 'ready', waiting: 30, etaMs: expect.any(Number), level: expect.any(String) },
      { tenant: 'small', waiting: 1 },
      { tenant: 'quiet', state: 'paused', waiting: 0, level: 'NONE', etaMs: 0 },
    ])
    expect(JSON.parse(JSON.stringify(overview.tenants))).toHaveLength(3)
  })

  it('shows at most as many tenants as are asked for', async () => {
    const queue = engine.queue()
    for (const tenant of ['a', 'b', 'c']) await queue.submit({ type: 'T', tenant })

    expect((await queue.overview({ tenants: 2 })).tenants).toHaveLength(2)
    await expect(queue.overview({ tenants: 0 })).rejects.toMatchObject({ code: 'SLUICE_INVALID_OPTIONS' })
  })

  it('shows who works: what a process holds since when, and who waits for work', async () => {
    const queue = engine.queue()
    const before = Date.now()
    const held = withResolvers<void>()
    queue.process('T', () => held.promise, { concurrency: 2 })
    await queue.submit({ jobs: [{ type: 'T' }, { type: 'T' }] })
    await until(async () => (await queue.counts()).running === 2)

    const [worker, ...others] = await queue.workers()
    const [busy] = (await queue.overview()).tenants
    held.resolve()
    await until(async () => (await queue.workers())[0]?.isIdle === true)

    expect(others).toEqual([])
    expect(worker).toMatchObject({ pid: process.pid, running: 2, isIdle: false })
    expect(worker?.since).toBeGreaterThanOrEqual(before - 1)
    expect(worker?.leasedUntil).toBeGreaterThan(Date.now())
    expect(busy).toMatchObject({ tenant: 'default', running: 2, waiting: 0 })
    expect(await queue.workers()).toMatchObject([{ running: 0, since: undefined, isIdle: true }])
  })
})

describe('a queue that is only observed', () => {
  it('shows and changes what its workers have declared, and declares nothing itself', async () => {
    const queue = engine.queue({ limits: { queue: '5/s' }, quantum: 7 })
    await queue.submit({ type: 'T', tenant: 'acme' })

    const observer = observed()
    await observer.tenant('acme').pause()

    expect(await observer.view()).toMatchObject({ quantum: 7 })
    expect(await observer.limits.list()).toMatchObject([{ limit: 5 }])
    expect(await queue.limits.list()).toMatchObject([{ limit: 5 }])
    expect(await queue.tenant('acme').view()).toMatchObject({ state: 'paused' })
  })

  it('is refused when the store does not have it, and is not there afterwards', async () => {
    await expect(observed('nowhere').overview()).rejects.toMatchObject({
      code: 'SLUICE_UNKNOWN_QUEUE',
      queue: 'nowhere',
    })
    await expect(observed('nowhere').tenant('acme').pause()).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_QUEUE' })
  })
})

describe('a process that only looks', () => {
  it('asks once whether the queue is there, and is told when it is gone', async () => {
    await engine.queue().counts()
    const looking = observed()
    await looking.counts()
    const client = engine.server.client()
    await client.config('RESETSTAT')

    for (let look = 0; look < 3; look++) await looking.counts()
    const asked = await client.info('commandstats')
    await client.flushall()

    expect(asked).not.toMatch(/cmdstat_(hexists|get):/)
    await expect(looking.counts()).rejects.toMatchObject({ code: 'SLUICE_UNKNOWN_QUEUE' })
  })
})
