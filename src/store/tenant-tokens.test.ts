import { afterAll, beforeAll, expect, it } from 'vitest'
import { useScriptStore } from '../../test/support/script-store/use-script-store.ts'
import { openRedis, type Redis } from './redis.ts'
import { changeTenant } from './scripts/change-tenant.ts'
import { countTenants, isTenantCursor, readTenantPage, readTenantTokens } from './tenant-tokens.ts'

const store = useScriptStore({ limits: { tenant: { kind: 'concurrency', max: 1 } } })
let redis: Redis

beforeAll(() => {
  redis = openRedis({ redis: { path: store.node.path } })
})
afterAll(() => redis.close())

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

async function readPages(limit: number): Promise<string[][]> {
  const pages: string[][] = []
  let cursor: string | undefined
  do {
    const page = await readTenantPage(redis, store.keys(), { cursor, limit })
    pages.push([...page.tokens])
    cursor = page.cursor
    if (cursor !== undefined) expect(isTenantCursor(cursor)).toBe(true)
  } while (cursor !== undefined)
  return pages
}

it('pages through tenants in every state, each once', async () => {
  for (let i = 0; i < 7; i++) await store.submit(`t${i}`, 1)
  await store.submit('t3', 1, { level: 'high' })
  await store.claim(1)
  await changeTenant(store.requests(), 't5', { paused: true }, store.nowUs)

  const pages = await readPages(3)

  expect(pages.every((page) => page.length <= 3)).toBe(true)
  expect(pages.flat().sort()).toEqual(['t0', 't1', 't2', 't3', 't4', 't5', 't6'])
})

it('pages through sets that are scanned in several batches', async () => {
  for (let i = 0; i < 700; i++) await store.submit(`t${i}`, 1)

  const pages = await readPages(90)

  expect(pages.every((page) => page.length <= 90)).toBe(true)
  expect(pages.flat()).toHaveLength(700)
  expect(new Set(pages.flat()).size).toBe(700)
})

it('counts tenants by where they stand', async () => {
  await store.submit('a', 1, { level: 'high' })
  await store.submit('a', 1, { level: 'low' })
  await store.submit('b', 1)
  await store.submit('c', 1)
  await changeTenant(store.requests(), 'c', { paused: true }, store.nowUs)

  expect(await countTenants(redis, store.keys())).toEqual({
    ready: { high: 1, normal: 1, low: 1 },
    parked: 0,
    paused: 1,
  })
})
