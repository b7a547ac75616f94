import { expect, it, onTestFinished } from 'vitest'
import { type JobInput, Sluice } from '../../src/index.ts'

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
