import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { guidePages, isRunElsewhere } from './guide-pages.ts'
import { read } from './markdown.ts'
import { runProgram } from './program.ts'
import { snippetsOf } from './snippets.ts'

const programs = guidePages
  .filter((page) => !isRunElsewhere(page, 'ts'))
  .flatMap((page) => snippetsOf(page).map(({ text }, index) => ({ page, number: index + 1, text })))

describe('programs of the README and the guides', () => {
  let redis: TestRedis
  let upstream: Upstream

  beforeAll(async () => {
    redis = await startRedis()
    upstream = await startUpstream({ limit: 1_000 })
  })
  afterAll(async () => {
    await upstream.stop()
    await redis.stop()
  })

  it.each(programs)('number $number of $page runs to its end', async ({ text }) => {
    const here = text
      .replaceAll('redis://redis.internal:6379', redis.url)
      .replaceAll('http://partner.example', upstream.url)

    await expect(runProgram(here)).resolves.toBeTypeOf('string')
  })
})

it('the example of promotions sends everything, and nobody waits for the large customer', async () => {
  const printed = await runProgram(read('examples/promotions/main.ts'))

  expect(printed).toMatch(/the partner saw 3200 calls, 0 too many\n$/)
  expect(printed).toContain('customer-a is done: 3000 sent, 0 failed')
  const ends = Array.from(printed.matchAll(/^(\S+) is done/gm), (match) => match[1])
  expect(ends.slice(0, 2).sort()).toEqual(['customer-b', 'customer-c'])
  expect(ends[2]).toBe('customer-a')
})
