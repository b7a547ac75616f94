import { expect, it } from 'vitest'
import { useScriptStore } from '../../../test/support/script-store/use-script-store.ts'
import { changeTenant } from './change-tenant.ts'
import { readLimits } from './read-limits.ts'

const store = useScriptStore()

const limits = {
  queue: { kind: 'bucket', limit: 100, windowMs: 1_000, burst: 2, jitterMs: 0 },
  levels: { high: { kind: 'concurrency', max: 5 } },
  tenant: { kind: 'bucket', limit: 1, windowMs: 1_000, jitterMs: 0 },
} as const

function read(tenant = '') {
  return readLimits(store.requests(), tenant, store.nowUs)
}

it('shows what every limit can grant now, and changes nothing', async () => {
  await store.begin({ limits })
  await store.submit('a', 2)
  await store.submit('b', 1, { level: 'high' })
  await store.claim(2)

  const { reply, changes } = await store.changesOf(() => read('a'))

  expect(reply).toEqual({
    activeTenants: 1,
    rows: [
      {
        available: 0,
        burst: 2,
        fullInUs: 20_204,
        share: 1_000,
        pushedForUs: 0,
        isEstimated: false,
        jitterUs: 0,
        definedJitterUs: 0,
        kind: 'bucket',
        limit: 100,
        name: 'queue',
        opensInUs: 10_102,
        scope: 'queue',
        used: 2,
        windowUs: 1_000_000,
      },
      {
        available: 4,
        burst: 0,
        fullInUs: 0,
        share: 1_000,
        pushedForUs: 0,
        isEstimated: false,
        jitterUs: 0,
        definedJitterUs: 0,
        kind: 'concurrency',
        limit: 5,
        name: 'high',
        opensInUs: 0,
        scope: 'high',
        used: 1,
        windowUs: 0,
      },
      {
        available: 0,
        burst: 1,
        fullInUs: 1_000_000,
        share: 1_000,
        pushedForUs: 0,
        isEstimated: false,
        jitterUs: 0,
        definedJitterUs: 0,
        kind: 'bucket',
        limit: 1,
        name: 'tenant',
        opensInUs: 1_000_000,
        scope: 'tenant',
        used: 1,
        windowUs: 1_000_000,
      },
    ],
  })
  expect(changes).toEqual({})
})

it('shows only the limits of the queue and its levels unless a tenant is named', async () => {
  await store.begin({ limits })

  expect((await read()).rows.map((row) => row.scope)).toEqual(['queue', 'high'])
})

it('shows a tenant’s own limit in place of the template', async () => {
  await store.begin({ limits })
  await changeTenant(
    store.requests(),
    'a',
    { limits: { tenant: { name: 'tenant', kind: 'concurrency', max: 3 } } },
    store.nowUs,
  )

  expect((await read('a')).rows.at(-1)).toMatchObject({ scope: 'tenant', kind: 'concurrency', limit: 3, available: 3 })
})

it('shows a closed limit after a restart', async () => {
  await store.begin({ limits })
  await store.claim(1)
  store.serverId = 'server-2'
  await store.claim(1)

  expect((await read()).rows[0]).toMatchObject({ available: 0, opensInUs: 1_000_000 })
})

it('changes nothing in a store that does not know the queue', async () => {
  await store.empty()

  await expect(read()).rejects.toThrow('unregistered')
  expect(await store.dump()).toEqual({})
})

it('runs while Redis is out of memory', async () => {
  expect(await store.outOfMemory(() => read('a'))).toEqual({ activeTenants: 0, rows: [] })
})
