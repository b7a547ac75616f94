import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readKeys } from './read-keys.ts'

const store = useScriptStore()

async function readAll(): Promise<string[]> {
  const found: string[] = []
  let cursor = '0'
  do {
    const step = await readKeys(store.requests(), { cursor, count: 2, nowUs: store.nowUs })
    found.push(...step.names)
    cursor = step.cursor
  } while (cursor !== '0')
  return [...new Set(found)].sort()
}

it('names the keys of the queue and no other, and changes nothing', async () => {
  await store.submit('a', 1)
  await store.client.set('test:{q}:qq:other', '1')

  const { reply, changes } = await store.changesOf(readAll)

  const expected = [
    'queue',
    'settings',
    'ready:normal',
    'since:normal',
    'tenant:a',
    'lane:normal:default:a',
    'client:producer',
  ]
  expect(reply).toEqual(expected.sort())
  expect(changes).toEqual({})
})

it('says for how long nobody has claimed anything', async () => {
  await store.submit('a', 1)
  await store.claim(1)
  store.now += 2_000_000

  const { quietMs } = await readKeys(store.requests(), { cursor: '0', count: 2, nowUs: store.nowUs })

  expect(quietMs).toBe(2_000)
})
