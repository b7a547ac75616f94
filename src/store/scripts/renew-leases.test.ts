import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { renewLeases } from './renew-leases.ts'

const store = useScriptStore()

function renew(fences: readonly string[], client = 'me') {
  return renewLeases(store.redis, store.keys(), { client, leaseMs: 15_000, fences, nowUs: store.nowUs })
}

it('prolongs the leases of the caller, all of them in one call', async () => {
  await store.submit('a', 2)
  const first = await store.claim(1)
  const second = await store.claim(1)
  store.now += 5_000_000

  const { reply, changes } = await store.changesOf(() => renew([first.fence, second.fence]))

  expect(reply).toEqual([])
  expect(changes).toEqual({ leases: { '1000000000:me': 1_020_000_000, '1000000001:me': 1_020_000_000 } })
})

it('renews a lease that ran out but was not taken back', async () => {
  await store.submit('a', 1)
  const { fence } = await store.claim(1)
  store.now += 60_000_000

  const { reply, changes } = await store.changesOf(() => renew([fence]))

  expect(reply).toEqual([])
  expect(changes).toEqual({ leases: { '1000000000:me': 1_075_000_000 } })
})

it('names the fences that are no longer the caller’s', async () => {
  await store.submit('a', 1)
  const { fence } = await store.claim(1)

  const { reply, changes } = await store.changesOf(async () => [await renew([fence], 'another'), await renew(['7'])])

  expect(reply).toEqual([[fence], ['7']])
  expect(changes).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  await store.submit('a', 1)
  const { fence } = await store.claim(1)
  store.now += 1

  const { changes } = await store.changesOf(() => store.outOfMemory(() => renew([fence])))

  expect(changes).toEqual({ leases: { '1000000000:me': 1_015_000_001 } })
})
