import { expect, it } from 'vitest'
import { beginGroup } from '../../../test/support/script-store/shared-limits.ts'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readSharedLimits } from './read-shared-limits.ts'

const store = useScriptStore()

it('shows what all queues have in flight under a shared limit, and changes nothing', async () => {
  await beginGroup(store, { kind: 'concurrency', max: 5 }, { a: 2, b: 2 })
  await store.claim(2)
  store.use('a')
  await store.claim(1)

  const { reply, changes } = await store.changesOf(() =>
    readSharedLimits(store.groupRequests(), ['gitlab'], store.nowUs),
  )

  expect(reply).toMatchObject([{ name: 'gitlab', kind: 'concurrency', limit: 5, used: 3, available: 2 }])
  expect(changes).toEqual({})
})

it('tells a limit that is not known', async () => {
  await beginGroup(store, '10/s', { a: 0 })

  await expect(readSharedLimits(store.groupRequests(), ['other'], store.nowUs)).rejects.toThrow('unregistered')
})
