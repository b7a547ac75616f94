import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startRedis, type TestRedis } from '../../src/testing/index.ts'
import { root } from './markdown.ts'

const execute = promisify(execFile)

interface Report {
  results: object
  mailsBeforeSmallWasDone: number
  mails: number
}

describe('examples/from-bullmq', () => {
  let redis: TestRedis
  let before: Report
  let after: Report

  async function run(side: string): Promise<Report> {
    const program = `examples/from-bullmq/${side}/main.ts`
    const { stdout } = await execute(process.execPath, ['--import', 'tsx', program, redis.url], { cwd: root })
    return JSON.parse(stdout) as Report
  }

  beforeAll(async () => {
    redis = await startRedis()
    before = await run('before')
    after = await run('after')
  })
  afterAll(() => redis.stop())

  it('does the same on Sluice as on BullMQ', () => {
    expect(after.results).toEqual(before.results)
    expect(after.results).toEqual({
      sent: {
        'globex campaign': 299,
        'globex confirmation': 1,
        'initech campaign': 10,
        'initech reset': 1,
        'initech reminder': 1,
        'initech digest': 2,
      },
      triesForFlaky: 2,
      campaigns: { globex: { sent: 299, failed: 1 }, initech: { sent: 10, failed: 0 } },
    })
  })

  it('lets the small customer finish beside the large one instead of behind it', () => {
    expect(before.mailsBeforeSmallWasDone).toBeGreaterThan(300)
    expect(after.mailsBeforeSmallWasDone).toBeLessThan(75)
  })
})
