import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { readTenant } from './read-tenant.ts'

const store = useScriptStore()

function read(tenant: string) {
  return readTenant(store.requests(), tenant, store.nowUs)
}

it('shows a tenant and changes nothing', async () => {
  await store.submit('a', 4)
  await store.submit('b', 4)
  await store.claim(2)

  const { reply, changes } = await store.changesOf(() => read('a'))

  expect(reply).toEqual({
    basePriority: 0,
    delayed: 0,
    fairness: {
      high: {
        entitled: 0,
        received: 0,
      },
      low: {
        entitled: 0,
        received: 0,
      },
      normal: {
        entitled: 1,
        received: 2,
      },
    },
    levelOverride: undefined,
    longestWaitMs: 0,
    parkedBy: undefined,
    parkedUntil: undefined,
    running: 2,
    state: 'ready',
    waiting: 2,
    weight: 1,
  })
  expect(changes).toEqual({})
})

it('shows until when a limit has parked it', async () => {
  await store.begin({ limits: { tenant: { kind: 'bucket', limit: 1, windowMs: 1_000, jitterMs: 0 } } })
  await store.submit('a', 2)
  await store.claim(1)

  expect(await read('a')).toMatchObject({ state: 'parked', parkedBy: 'tenant', parkedUntil: 1_001_000 })
})

it('shows that it waits for a slot, for which there is no instant', async () => {
  await store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
  await store.submit('a', 2)
  await store.claim(1)

  expect((await read('a')).parkedUntil).toBe(Number.POSITIVE_INFINITY)
})

it('shows a tenant that is not known as one with nothing', async () => {
  expect(await store.outOfMemory(() => read('nobody'))).toMatchObject({
    state: 'idle',
    weight: 1,
    waiting: 0,
    delayed: 0,
    running: 0,
  })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read('a')).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})
