import { afterAll, beforeAll, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { type AuditEntry, AuditStore, isAuditId } from './audit.ts'
import { openRedis, type Redis } from './redis.ts'

let server: TestRedis
let redis: Redis

beforeAll(async () => {
  server = await startRedis()
  redis = openRedis({ redis: { path: server.path } })
})
afterAll(async () => {
  await redis.close()
  await server.stop()
})

function entry(target: string): AuditEntry {
  return {
    at: 1,
    who: 'ops',
    role: 'operator',
    address: '::1',
    operation: 'changeTenant',
    target,
    status: 200,
    requestId: 'r',
  }
}

it('lists changes newest first, page by page', async () => {
  const audit = new AuditStore({ redis, prefix: 'pages', keep: 1_000 })
  for (const target of ['/1', '/2', '/3']) await audit.add(entry(target))

  const first = await audit.list({ count: 2 })
  const second = await audit.list({ count: 2, before: first[1]?.id })

  expect(first.map(({ target }) => target)).toEqual(['/3', '/2'])
  expect(second).toEqual([{ ...entry('/1'), id: expect.stringMatching(/^\d+-\d+$/) }])
  expect(isAuditId(first[0]?.id ?? '')).toBe(true)
  expect(['5', '0-0', '1-18446744073709551616', 'x-1'].map(isAuditId)).not.toContain(true)
})

it('keeps a bounded number', async () => {
  const audit = new AuditStore({ redis, prefix: 'bounded', keep: 100 })
  for (let i = 0; i < 1_000; i++) await audit.add(entry('/x'))

  // Redis trims whole blocks of a hundred.
  expect(await redis.call('XLEN', 'bounded:{http}:audit')).toBeLessThan(300)
})

it('lists nothing where nothing was changed', async () => {
  expect(await new AuditStore({ redis, prefix: 'empty', keep: 100 }).list({ count: 10 })).toEqual([])
})
