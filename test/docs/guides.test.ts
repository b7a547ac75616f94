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

  it('the application of NestJS in the README sends what is submitted to it', async () => {
    const [, program] = snippetsOf('README.md')
    const around = `
      import 'reflect-metadata'
      import { NestFactory } from '@nestjs/core'
      import { getQueueToken } from 'sluice/nestjs'
      const application = await NestFactory.createApplicationContext(AppModule, { logger: false })
      const queue = application.get(getQueueToken('promotions'))
      await queue.submit({ tenant: 'acme', type: 'SEND_PROMOTION', payload: { to: 'ann@example.org' } })
      await queue.drain()
      console.log(JSON.stringify(await queue.counts()))
      await application.close()`
    const here = `${program?.text}${around}`
      .replace('redis://redis.internal:6379', redis.url)
      .replace('https://partner.example', `${upstream.url}/promotion-of-the-readme`)

    const counts = JSON.parse(await runProgram(here)) as object

    expect(counts).toMatchObject({ succeeded: 1, failed: 0, retried: 0 })
    const calls = await upstream.calls()
    expect(calls.filter(({ path }) => path === '/promotion-of-the-readme')).toHaveLength(1)
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
