import { expect, it, onTestFinished } from 'vitest'
import { type JobInput, type QueueEvent, Sluice } from '../../src/index.ts'
import { startRedis } from '../../src/testing/redis-server.ts'

// Nothing listens there.
const NOWHERE = 'redis://127.0.0.1:1'
/** Without its signal it would wait for 45 s. */
const SOON_MS = 20_000

it.each([
  { what: 'a job', input: { type: 'T' } },
  { what: 'an action', input: { type: 'T', tenant: 'a', jobs: [{ payload: 1 }] } },
])('submitting $what is given up when its signal says so, although Redis is gone', async ({ input }) => {
  const sluice = new Sluice({ redis: NOWHERE, log: () => {} })
  onTestFinished(() => sluice.close())
  const queue = sluice.queue('q')
  const startedAt = performance.now()

  const submit = (signal: AbortSignal) => queue.submit(input as JobInput & { jobs?: never }, { signal })

  await Promise.all([
    expect(submit(AbortSignal.timeout(50))).rejects.toMatchObject({ name: 'TimeoutError' }),
    expect(submit(AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late'),
  ])

  expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
})

it('a submit that was given up while Redis was gone stores nothing when that is back, and tells of no action', async () => {
  const server = await startRedis()
  const sluice = new Sluice({ redis: { path: server.path }, commandTimeoutMs: 200, log: () => {} })
  onTestFinished(async () => {
    await sluice.close()
    await server.stop()
  })
  const queue = sluice.queue('q')
  await queue.counts()
  await server.kill()
  const give = { signal: AbortSignal.timeout(50) }

  await expect(queue.submit({ type: 'T' }, give)).rejects.toMatchObject({ name: 'TimeoutError' })
  const action = queue.submit(
    { type: 'T', tenant: 'a', action: 'one', jobs: [{}] },
    { signal: AbortSignal.timeout(50) },
  )
  await expect(action).rejects.toMatchObject({ name: 'TimeoutError' })
  await server.restart()
  await queue.submit({ type: 'T', id: 'after' })

  const events: QueueEvent[] = []
  for await (const event of queue.events({ from: '0', follow: false })) events.push(event)
  expect(await queue.counts()).toMatchObject({ waiting: 1 })
  expect(events).toEqual([])
})

it('a job that is no job is refused at once, although Redis is gone', async () => {
  const sluice = new Sluice({ redis: NOWHERE, log: () => {} })
  onTestFinished(() => sluice.close())
  const startedAt = performance.now()

  await expect(sluice.queue('q').submit({ type: '' })).rejects.toMatchObject({ code: 'SLUICE_INVALID_JOB' })

  expect(performance.now() - startedAt).toBeLessThan(SOON_MS)
})
