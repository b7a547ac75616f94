import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { ScriptStore } from '../testing/script-store.ts'
import { openRedis, type Redis } from './redis.ts'
import { changeTenant } from './scripts/change-tenant.ts'
import { readTenantTokens } from './tenant-tokens.ts'

let store: ScriptStore
let redis: Redis

beforeAll(async () => {
  store = await ScriptStore.start()
  redis = openRedis({ redis: { path: store.server.path } })
})
beforeEach(() => store.begin({ limits: { tenant: { kind: 'concurrency', max: 1 } } }))
afterAll(async () => {
  await redis.close()
  await store.stop()
})

it('finds tenants that are ready, parked or paused, each once', async () => {
  await store.submit('ready', 1)
  await store.submit('both', 1, { level: 'high' })
  await store.submit('both', 1, { level: 'low' })
  await store.claim(1)
  await store.submit('paused', 1)
  await changeTenant(store.requests(), 'paused', { paused: true }, store.nowUs)
  const found: string[] = []

  for await (const token of readTenantTokens(redis, store.keys())) found.push(token)

  expect(found.sort()).toEqual(['both', 'paused', 'ready'])
})

it('finds all of several hundred', async () => {
  for (let i = 0; i < 700; i++) await store.submit(`t${i}`, 1)
  const found = new Set<string>()

  for await (const token of readTenantTokens(redis, store.keys())) found.add(token)

  expect(found.size).toBe(700)
})
