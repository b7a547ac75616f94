import { afterEach, describe, expect, it } from 'vitest'
import { Trial } from './trial.ts'

let trial: Trial
afterEach(() => trial.stop())

describe('submitting the same ids', () => {
  it('at the same time from several processes, again and again, stores and runs each job once', async () => {
    trial = await Trial.start({ upstream: true })
    await Promise.all([trial.worker(), trial.worker()])

    const results = await Promise.all(
      Array.from({ length: 4 }, () => trial.submitted({ prefix: 'same', count: 600, chunk: 30, copies: 3 })),
    )

    const accepted = results.reduce((sum, result) => sum + result.accepted, 0)
    const duplicates = results.reduce((sum, result) => sum + result.duplicates, 0)
    expect({ accepted, duplicates }).toEqual({ accepted: 600, duplicates: 600 * 11 })
    const history = await trial.expectPromisesKept()
    expect(history.filter(({ kind }) => kind === 'effect')).toHaveLength(600)
  })

  it('in one stream stores the first of each', async () => {
    trial = await Trial.start()
    const twice = ['x', 'y', 'x', 'x', 'y'].map((id) => ({ id, payload: { name: id } }))

    const { accepted, duplicates } = await trial.queue.submit({ tenant: 'a', type: 'CALL', jobs: twice })

    expect({ accepted, duplicates }).toEqual({ accepted: 2, duplicates: 3 })
    expect((await trial.queue.counts()).waiting).toBe(2)
  })
})
