import { expect, it } from 'vitest'
import { InvalidOptionsError, throttled } from '../../src/index.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

it('says how far a tenant is behind, and how far the queue, the worst tenant first', async () => {
  const queue = engine.queue({ limits: { queue: '100/s' } })
  await queue.submit({ type: 'CALL', jobs: Array.from({ length: 500 }, () => ({ tenant: 'large', payload: 1 })) })
  await queue.submit({ type: 'CALL', jobs: Array.from({ length: 20 }, () => ({ tenant: 'small', payload: 1 })) })

  const large = await queue.congestion.of('large')
  const summary = await queue.congestion.summary()

  expect(large).toMatchObject({ waiting: 500, speed: 50, isMeasured: false, backoffMs: 11_000, level: 'HIGH' })
  expect(large).toMatchObject({ etaMs: 10_000, throttles: 0, averageThrottlesPerJob: 0 })
  expect(Math.abs(large.etaAt - 10_000 - Date.now())).toBeLessThan(5_000)
  expect(summary).toMatchObject({ waiting: 520, activeTenants: 2, level: 'MODERATE' })
  expect(summary.worst).toEqual({ tenant: 'large', level: 'HIGH' })
  expect(summary.tenants.map(({ tenant }) => tenant)).toEqual(['large', 'small'])
})

it('makes a job wait by the backlog of its tenant when the upstream does not say how long, and counts it', async () => {
  const queue = engine.queue({ limits: { tenant: '10/s' }, congestion: { baseBackoffMs: 2_000 } })
  await queue.submit({ type: 'CALL', jobs: Array.from({ length: 31 }, () => ({ tenant: 'a', payload: 1 })) })
  const [job] = await queue.claim(1)

  await job?.throttle()

  // The job itself waits no longer: 30 others do, at 10 a second.
  expect(await queue.congestion.of('a')).toMatchObject({ waiting: 30, lastBackoffMs: 5_000 })

  await queue.congestion.reset('a')
  expect(await queue.congestion.of('a')).toMatchObject({ throttles: 0, lastBackoffMs: undefined })
})

it('changes while running: switched off, a pushed-back job waits for the shortest backoff', async () => {
  const queue = engine.queue()
  await queue.submit({ type: 'CALL', jobs: Array.from({ length: 60 }, () => ({ tenant: 'a', payload: 1 })) })
  await queue.change({ congestion: { enabled: false, baseBackoffMs: 700 } })

  const [job] = await queue.claim(1)
  await job?.throttle()

  expect(await queue.congestion.of('a')).toMatchObject({ backoffMs: 700, level: 'NONE', lastBackoffMs: 700 })
  expect((await queue.view()).congestion).toMatchObject({ enabled: false, baseBackoffMs: 700, maxBackoffMs: 120_000 })
  await expect(queue.change({ congestion: { baseBackoffMs: 5_000, maxBackoffMs: 100 } })).rejects.toThrow(
    InvalidOptionsError,
  )
})

it('records how far the queue and its tenants are behind while jobs wait', async () => {
  const queue = engine.queue({ limits: { tenant: '1/s' } })
  await queue.submit({ type: 'CALL', jobs: Array.from({ length: 50 }, () => ({ tenant: 'a', payload: 1 })) })
  queue.process('CALL', () => throttled({ retryAfterMs: 60_000 }))

  await expect.poll(() => queue.congestion.history({ tenant: 'a' }), { timeout: 10_000 }).toHaveLength(1)

  const [ofQueue] = await queue.congestion.history()
  expect(ofQueue).toMatchObject({ activeTenants: 1, waiting: 49 })
  const [ofTenant] = await queue.congestion.history({ tenant: 'a' })
  expect(ofTenant).toMatchObject({ waiting: 49, speed: 1, backoffMs: 50_000, level: 'CRITICAL', etaMs: 49_000 })
})
