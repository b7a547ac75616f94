import { expect, it } from 'vitest'
import { resultsByJob } from './action-results.ts'
import { queueKeys } from './keys.ts'
import type { Redis } from './redis.ts'

/** Answers a result of so many bytes for every number, and keeps how many it was asked for at once. */
function redisWith(bytes: number) {
  const asked: number[] = []
  const redis = {
    callWith: async (command: string, [, ...numbers]: string[]) => {
      // The list of those with a delay.
      if (command === 'LRANGE') return []
      asked.push(numbers.length)
      return numbers.map((number) => number.padEnd(bytes, '.'))
    },
  } as unknown as Redis
  return { asked, source: { redis, keys: queueKeys('test', 'q', 'c'), tenant: 'a', name: 'x' } }
}

async function read(bytes: number, count: number) {
  const { asked, source } = redisWith(bytes)
  const numbers: number[] = []
  for await (const line of resultsByJob(source, { first: 1, next: 1 + count })) numbers.push(Number.parseInt(line, 10))
  return { asked, numbers }
}

it('reads small results many at once, in the order of the jobs', async () => {
  const { asked, numbers } = await read(50, 500)

  expect(numbers).toEqual(Array.from({ length: 500 }, (_, at) => at + 1))
  expect(asked).toEqual([16, 484])
})

it('reads large results few at once, so that a page stays small', async () => {
  const { asked, numbers } = await read(400_000, 20)

  expect(numbers).toHaveLength(20)
  expect(asked).toEqual([16, 2, 2])
})
