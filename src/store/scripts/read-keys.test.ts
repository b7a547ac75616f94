import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { ScriptStore } from '../../testing/script-store.ts'
import { walkKeys } from './read-keys.ts'

let store: ScriptStore

beforeAll(async () => {
  store = await ScriptStore.start()
})
beforeEach(() => store.begin())
afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
afterAll(() => store.stop())

it('names the keys of the queue and no other, and changes nothing', async () => {
  await store.submit('a', 1)
  await store.client.set('test:{q}:qq:other', '1')
  const found: string[] = []

  const { changes } = await store.changesOf(async () => {
    for await (const names of walkKeys(store.requests(), 2)) found.push(...names)
  })

  const expected = [
    'queue',
    'settings',
    'ready:normal',
    'since:normal',
    'tenant:a',
    'lane:normal:default:a',
    'client:producer',
  ]
  expect([...new Set(found)].sort()).toEqual(expected.sort())
  expect(changes).toEqual({})
})
