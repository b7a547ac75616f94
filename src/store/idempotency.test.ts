import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { IdempotencyStore } from './idempotency.ts'
import { openRedis, type Redis } from './redis.ts'

let server: TestRedis
let redis: Redis
let store: IdempotencyStore

beforeAll(async () => {
  server = await startRedis()
  redis = openRedis({ redis: { path: server.path } })
})
beforeEach(async () => {
  await redis.call('FLUSHALL')
  store = new IdempotencyStore({ redis, prefix: 'test' })
})
afterAll(async () => {
  await redis.close()
  await server.stop()
})

it('lets the first request through, and answers a repeat with what was answered', async () => {
  const answer = { status: 202, body: '{"id":1}', location: '/v1/actions/1' }

  expect(await store.take('k', 'f')).toEqual({ word: 'first' })
  expect(await store.take('k', 'f')).toEqual({ word: 'running' })
  await store.answer('k', 'f', answer)

  expect(await store.take('k', 'f')).toEqual({ word: 'answered', answer })
})

it('tells another request under the same key apart, running or answered', async () => {
  await store.take('k', 'f')

  expect(await store.take('k', 'g')).toEqual({ word: 'other' })
  await store.answer('k', 'f', { status: 200, body: '' })
  expect(await store.take('k', 'g')).toEqual({ word: 'other' })
})

it('frees the key of a request that failed', async () => {
  await store.take('k', 'f')
  await store.release('k')

  expect(await store.take('k', 'g')).toEqual({ word: 'first' })
})

it('keeps nothing for ever: a request that never answers for a minute, an answer for a day', async () => {
  await store.take('running', 'f')
  await store.take('answered', 'f')
  await store.answer('answered', 'f', { status: 200, body: '' })

  const lives = await Promise.all(
    ['running', 'answered'].map((key) => redis.call('PTTL', `test:{http}:idempotency:${key}`)),
  )

  expect(lives[0]).toBeGreaterThan(50_000)
  expect(lives[0]).toBeLessThanOrEqual(60_000)
  expect(lives[1]).toBeGreaterThan(86_000_000)
})
