import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Queue as OldQueue } from 'bullmq'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/index.ts'
import { root } from './markdown.ts'
import { runProgram } from './program.ts'
import { snippetsOf } from './snippets.ts'

const execute = promisify(execFile)

interface Report {
  results: { sent: Record<string, number> }
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
    const report = JSON.parse(stdout) as Report
    const { sent } = report.results
    // Two are waited for; on a machine that stands still another tick passes before the schedule is taken back.
    sent['initech digest'] = Math.min(2, sent['initech digest'] ?? 0)
    return report
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

describe('docs/guides/coming-from-bullmq.md', () => {
  const month = 30 * 86_400_000

  it('hands over what waits and what is delayed, with the instant at which it is due, and leaves nothing', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const [mover, ...others] = snippetsOf('docs/guides/coming-from-bullmq.md')
    const before = Date.now()

    await runProgram(mover?.text.replaceAll('redis://redis.internal:6379', redis.url) ?? '')

    const after = Date.now()
    expect(others).toEqual([])
    const old = new OldQueue('mail', { connection: { url: redis.url } })
    onTestFinished(() => old.close())
    const { completed, ...left } = await old.getJobCounts()
    expect(completed).toBe(1)
    expect(Object.values(left).filter((count) => count > 0)).toEqual([])
    const sluice = new Sluice({ redis: redis.url })
    onTestFinished(() => sluice.close())
    const mail = sluice.queue('mail')
    expect(await mail.job('bullmq-1', { tenant: 'initech' })).toMatchObject({ state: 'waiting', type: 'SEND' })
    const delayed = await mail.job('bullmq-2', { tenant: 'initech' })
    expect(delayed).toMatchObject({ state: 'delayed', payload: { to: 'user-1' } })
    expect(delayed?.dueAt).toBeGreaterThanOrEqual(before + month)
    expect(delayed?.dueAt).toBeLessThanOrEqual(after + month)
  })
})
