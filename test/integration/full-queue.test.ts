import { describe, expect, it } from 'vitest'
import type { QueueFullError } from '../../src/index.ts'
import { useEngine } from './engine.ts'
import { payloads } from './payloads.ts'

const engine = useEngine()

function rejection(promise: Promise<unknown>): Promise<QueueFullError> {
  return promise.then(
    () => {
      throw new Error('nothing was refused')
    },
    (error: QueueFullError) => error,
  )
}

describe('a queue with a bound for all and one for each tenant, asked for an error', () => {
  const options = { maxPending: 5, maxPendingPerTenant: 3, whenFull: 'error' } as const

  it('names the tenant when it has as many jobs as it may have', async () => {
    const queue = engine.queue(options)

    const error = await rejection(queue.submit({ type: 'T', tenant: 'a', jobs: payloads(4) }))

    expect(error).toMatchObject({ code: 'SLUICE_QUEUE_FULL', queue: 'q', tenant: 'a', maxPending: 3 })
    expect(error.message).toContain('raise maxPendingPerTenant')
    expect(await queue.counts()).toMatchObject({ waiting: 3 })
  })

  it('names the queue when all of it is full, and no tenant', async () => {
    const queue = engine.queue(options)
    await queue.submit({ type: 'T', tenant: 'a', jobs: payloads(3) })

    const error = await rejection(queue.submit({ type: 'T', tenant: 'b', jobs: payloads(3) }))

    expect(error).toMatchObject({ code: 'SLUICE_QUEUE_FULL', queue: 'q', tenant: undefined, maxPending: 5 })
    expect(error.message).toContain('raise maxPending.')
    expect(await queue.counts()).toMatchObject({ waiting: 5 })
  })
})
