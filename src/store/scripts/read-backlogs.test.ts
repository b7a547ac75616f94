import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { ScriptStore } from '../../testing/script-store.ts'
import { readBacklogs } from './read-backlogs.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

function read(...tenants: string[]) {
  return readBacklogs(store.redis, store.keys(), tenants)
}

it('answers how many jobs of each tenant wait, 0 for one that is not known, and changes nothing', async () => {
  await store.submit('a', 3)
  await store.submit('b', 5)
  await store.claim(1)

  const { reply, changes } = await store.changesOf(() => read('b', 'nobody', 'a'))

  expect(reply).toEqual([5, 0, 2])
  expect(changes).toEqual({})
})

it('asks nothing for nobody', async () => {
  expect(await read()).toEqual([])
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)

  expect(await store.outOfMemory(() => read('a'))).toEqual([1])
})
