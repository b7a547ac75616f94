import { expect, it } from 'vitest'
import type { Requests } from '../store/requests.ts'
import { runDelayed } from './delayed-jobs.ts'

/** A store with three steps of delayed jobs; says from which cursors it was asked. */
function threeSteps(onStep: (cursor: string) => void = () => {}) {
  const asked: string[] = []
  const next: Readonly<Record<string, string>> = { '0': '17', '17': '23', '23': '0' }
  const run = async (_script: unknown, argumentsOf: (request: number) => { cursor: string }) => {
    const { cursor } = argumentsOf(1)
    asked.push(cursor)
    onStep(cursor)
    return ['hastened', next[cursor], 200, 3]
  }
  return { asked, requests: { run } as unknown as Requests }
}

it('goes on until all were looked at', async () => {
  const { asked, requests } = threeSteps()

  expect(await runDelayed(requests, {}, {})).toEqual({ looked: 600, due: 9, cursor: undefined })
  expect(asked).toEqual(['0', '17', '23'])
})

it('ends after the step under way when it is told to, and says where to go on', async () => {
  const controller = new AbortController()
  const { asked, requests } = threeSteps(() => controller.abort())

  const first = await runDelayed(requests, {}, { signal: controller.signal })
  const rest = await runDelayed(requests, {}, { cursor: first.cursor as string })

  expect(first).toEqual({ looked: 200, due: 3, cursor: '17' })
  expect(rest).toEqual({ looked: 400, due: 6, cursor: undefined })
  expect(asked).toEqual(['0', '17', '23'])
})

it('refuses a cursor that is none', async () => {
  const { asked, requests } = threeSteps()

  await expect(runDelayed(requests, {}, { cursor: 'x' })).rejects.toThrow('the cursor of an earlier answer')
  expect(asked).toEqual([])
})
