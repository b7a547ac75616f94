import { beforeEach, expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { homeKey } from '../keys.ts'
import { moveHome } from './move-home.ts'

const store = useScriptStore()
beforeEach(() => store.empty())

const home = homeKey('test', 'q')

it('notes the new home in the place of the one that the caller has read', async () => {
  await store.client.set(home, 'q')

  const { changes } = await store.changesOf(() => moveHome(store.redis, home, { from: 'q', to: 'github' }))

  expect(changes).toEqual({ '@home': 'github' })
})

it('leaves alone what somebody else has noted meanwhile, or nobody', async () => {
  await store.client.set(home, 'gitlab')

  const noted = await store.changesOf(() => moveHome(store.redis, home, { from: 'q', to: 'github' }))
  await store.empty()
  const missing = await store.changesOf(() => moveHome(store.redis, home, { from: 'q', to: 'github' }))

  expect([noted.changes, missing.changes]).toEqual([{}, {}])
})

it('runs while Redis is out of memory', async () => {
  await store.client.set(home, 'q')

  await store.outOfMemory(() => moveHome(store.redis, home, { from: 'q', to: 'github' }))

  expect(await store.client.get(home)).toBe('github')
})
