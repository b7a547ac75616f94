import { expect, it } from 'vitest'
import { withoutCredentials } from './without-credentials.ts'

it.each([
  ['redis://redis.internal:6379', 'redis://redis.internal:6379'],
  ['redis://:secret@redis.internal:6379/1', 'redis://…@redis.internal:6379/1'],
  ['redis://user:sec@ret@redis.internal', 'redis://…@redis.internal'],
  ['redis-sentinel://user:secret@a:26379,b:26379/main', 'redis-sentinel://…@a:26379,b:26379/main'],
  ['/run/redis@home/redis.sock', '/run/redis@home/redis.sock'],
  ['embedded', 'embedded'],
])('shows %s as %s', (url, shown) => {
  expect(withoutCredentials(url)).toBe(shown)
})
