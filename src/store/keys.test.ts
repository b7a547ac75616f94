import { expect, it } from 'vitest'
import { groupKeys, keyPatterns, keyPrefix, queueKeys } from './keys.ts'

it('builds every key of a queue under its own hash tag', () => {
  const keys = Object.values(queueKeys('sluice', 'promotions', 'me'))

  expect(new Set(keys).size).toBe(keys.length)
  for (const key of keys) expect(key).toMatch(/^sluice:\{promotions\}:(promotions:|@)/)
})

it('builds every key of a queue that shares limits under the hash tag of their group', () => {
  const keys = Object.values(queueKeys('sluice', 'promotions', 'me', 'github'))

  for (const key of keys) expect(key).toMatch(/^sluice:\{github\}:(promotions:|@)/)
  expect(groupKeys('sluice', 'github', 'me')).toEqual({
    groupLimits: 'sluice:{github}:@limits',
    groupQueues: 'sluice:{github}:@queues',
    client: 'sluice:{github}:@client:me',
  })
})

it('keeps queues and prefixes apart', () => {
  const [a, b, c] = [queueKeys('x', 'a', 'me'), queueKeys('x', 'b', 'me'), queueKeys('y', 'a', 'me')]

  expect(new Set([a.queue, b.queue, c.queue]).size).toBe(3)
})

it('gives every client its own memory and wake list, and all of them the same queue', () => {
  const [mine, yours] = [queueKeys('x', 'a', 'me'), queueKeys('x', 'a', 'you')]

  const different = Object.keys(mine).filter(
    (name) => mine[name as keyof typeof mine] !== yours[name as keyof typeof mine],
  )
  expect(different.sort()).toEqual(['client', 'wake'])
})

it('lists a pattern for every key it builds', () => {
  const start = keyPrefix('x', 'a')
  const parts = Object.values(queueKeys('x', 'a', '<client>')).map((key) =>
    key.slice(key.startsWith(start) ? start.length : 'x:{a}:'.length),
  )

  expect(keyPatterns).toEqual(expect.arrayContaining(parts))
})

it('ends the key of the queue’s state in the word that scripts cut off to get the prefix', () => {
  expect(queueKeys('x', 'a', 'me').queue).toBe(`${keyPrefix('x', 'a')}queue`)
})
