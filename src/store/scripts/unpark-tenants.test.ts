import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { unparkTenants } from './unpark-tenants.ts'

const store = useScriptStore({ limits: { tenant: { kind: 'bucket', limit: 1, windowMs: 1_000, jitterMs: 0 } } })

function unpark() {
  return unparkTenants(store.requests(), store.nowUs)
}

async function parkTwo(): Promise<void> {
  await store.submit('a', 2)
  await store.submit('b', 2)
  await store.claim(2)
}

it('leaves it to the claims that follow to put all parked tenants back in line', async () => {
  await parkTwo()

  const { reply, changes } = await store.changesOf(() => unpark())

  expect(reply).toBe(2)
  expect(changes).toEqual({ parked: null, unparking: { a: 1_001_000_000, b: 1_001_000_000 } })
})

it('puts those back in line itself that an earlier call has left', async () => {
  await parkTwo()
  await unpark()

  const { reply, changes } = await store.changesOf(() => unpark())

  expect(reply).toBe(2)
  expect(changes).toMatchObject({ unparking: null, 'ready:normal': { a: expect.anything(), b: expect.anything() } })
})

it('wakes an idle client', async () => {
  await parkTwo()
  await store.claim(1, { idleForMs: 60_000 }, 'sleeper')

  const { changes } = await store.changesOf(() => unpark())

  expect(changes).toMatchObject({ idle: null, 'wake:sleeper': ['work'] })
})

it('changes nothing where nobody is parked, also out of memory', async () => {
  const { reply, changes } = await store.changesOf(() => store.outOfMemory(() => unpark()))

  expect(reply).toBe(0)
  expect(changes).toEqual({})
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(unpark()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
