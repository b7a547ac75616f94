import { afterEach, describe, expect, it } from 'vitest'
import { Scenario } from './scenario.ts'

let scenario: Scenario
afterEach(() => scenario.stop())

describe('submitting the same ids', () => {
  it('at the same time from several processes, again and again, stores and runs each job once', async () => {
    scenario = await Scenario.start({ upstream: true })
    await Promise.all([scenario.worker(), scenario.worker()])

    const results = await Promise.all(
      Array.from({ length: 4 }, () => scenario.submitted({ prefix: 'same', count: 600, chunk: 30, copies: 3 })),
    )

    const accepted = results.reduce((sum, result) => sum + result.accepted, 0)
    const duplicates = results.reduce((sum, result) => sum + result.duplicates, 0)
    expect({ accepted, duplicates }).toEqual({ accepted: 600, duplicates: 600 * 11 })
    const history = await scenario.expectPromisesKept()
    expect(history.filter(({ kind }) => kind === 'effect')).toHaveLength(600)
  })

  it('in one stream stores the first of each', async () => {
    scenario = await Scenario.start()
    const twice = ['x', 'y', 'x', 'x', 'y'].map((id) => ({ id, payload: { name: id } }))

    const { accepted, duplicates } = await scenario.queue.submit({ tenant: 'a', type: 'CALL', jobs: twice })

    expect({ accepted, duplicates }).toEqual({ accepted: 2, duplicates: 3 })
    expect((await scenario.queue.counts()).waiting).toBe(2)
  })
})
