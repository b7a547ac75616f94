import { expect, it } from 'vitest'
import { keyPrefix } from '../../src/store/keys.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { until } from '../support/until.ts'
import { withResolvers } from '../support/with-resolvers.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

function key(name: string): string {
  return keyPrefix(engine.prefix, 'q') + name
}

/** Every claim of the queue fails until what this answers is called. */
async function breakClaims(): Promise<() => Promise<void>> {
  const redis = engine.server.client()
  await redis.rename(key('leases'), key('leases:kept'))
  await redis.set(key('leases'), 'no set')
  return async () => {
    await redis.rename(key('leases:kept'), key('leases'))
  }
}

async function scriptsRun(): Promise<number> {
  const stats = await engine.server.client().info('commandstats')
  return Number(/cmdstat_fcall:calls=(\d+)/.exec(stats)?.[1])
}

function failures(): number {
  return engine.log.filter(({ event }) => event === 'worker.exchange-failed').length
}

it('claims no more than it has hands where a job ends before the next try', async () => {
  const queue = engine.queue()
  const mayEnd = withResolvers<void>()
  const releases: (() => void)[] = []
  await queue.submit({ type: 'first' })
  queue.process('first', () => mayEnd.promise, { concurrency: 2 })
  queue.process('T', () => new Promise<void>((resolve) => releases.push(resolve)))
  await until(async () => (await queue.counts()).running === 1)
  await queue.submit({ type: 'T', delayMs: 200, jobs: Array.from({ length: 6 }, () => ({})) })
  const mend = await breakClaims()
  await until(() => failures() === 1)
  await mend()

  // The call that tells of the end has no answer yet when the second is over.
  await engine.server.client().client('PAUSE', 1_500)
  mayEnd.resolve()
  await until(async () => (await queue.counts()).succeeded === 1)
  await until(() => releases.length >= 2)

  expect(await queue.counts()).toMatchObject({ running: 2 })
  await until(async () => {
    for (const release of releases) release()
    return (await queue.counts()).succeeded === 7
  })
})

it('asks for nothing more once it is stopped', async () => {
  const clock = manualClock()
  const queue = engine.sluice({ clock }).queue('q')
  const ends = [withResolvers<void>(), withResolvers<void>()]
  await queue.submit({ type: 'T', jobs: [{ payload: 0 }, { payload: 1 }] })
  queue.process<number>('T', ({ payload }) => ends[payload]?.promise)
  await until(async () => (await queue.counts()).running === 2)
  const mend = await breakClaims()

  const stopped = queue.stop()
  ends[0]?.resolve()
  await until(() => failures() === 1)
  await mend()
  ends[1]?.resolve()
  await stopped
  const before = await scriptsRun()
  await clock.advance(5_000)

  expect(await scriptsRun()).toBe(before)
})

it('lets others run, after its lease, what it can renew and cannot tell', async () => {
  const may = (...rights: string[]) => engine.server.client().acl('SETUSER', 'worker', ...rights)
  await may('on', 'nopass', '~*', '&*', '+@all')
  const redis = { path: engine.server.path, username: 'worker', password: 'any' }
  const refused = engine.sluice({ redis }).queue('q', { leaseMs: 500 })
  const mayEnd = withResolvers<void>()
  const ranBy: string[] = []
  await refused.submit({ type: 'T' })
  refused.process('T', async () => {
    ranBy.push('refused')
    await mayEnd.promise
  })
  await until(() => ranBy.length === 1)
  await may('-hmget')
  mayEnd.resolve()
  await until(() => failures() > 0)

  const other = engine.queue({ leaseMs: 500 })
  other.process('T', () => {
    ranBy.push('other')
  })
  await until(async () => (await other.counts()).succeeded === 1)

  expect(ranBy).toEqual(['refused', 'other'])
  await may('+hmget')
})
