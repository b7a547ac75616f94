import type { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { type CliEnd, sluice } from './cli-process.ts'
import { folderWith, removeFolder } from './server-process.ts'

let redis: TestRedis
let client: Redis

beforeAll(async () => {
  redis = await startRedis()
  client = redis.client()
})
afterAll(() => redis.stop())

interface Report {
  readonly checks: readonly { check: string; verdict: string; found: string; fix?: string }[]
  readonly differences: readonly object[]
  readonly failures: number
}

function doctor(args: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<CliEnd> {
  const folder = folderWith(files)
  onTestFinished(() => removeFolder(folder))
  return sluice(['doctor', ...args], { cwd: folder })
}

async function report(
  args: readonly string[],
  files?: Readonly<Record<string, string>>,
): Promise<Report & { code: number | null }> {
  const { code, stdout } = await doctor([...args, '--json'], files)
  return { code, ...(JSON.parse(stdout) as Report) }
}

function verdictOf({ checks }: Report, check: string) {
  return checks.find((finding) => finding.check === check)
}

describe('sluice doctor', () => {
  it('finds nothing wrong with the embedded server, and says what it looked at', async () => {
    const { code, stdout, stderr } = await doctor([])

    // A machine that stands still for a moment is told so, which is no fault of the server.
    const isSlow = /^warn {2}latency: /m.test(stdout)
    expect({ code, stderr }).toEqual({ code: 0, stderr: isSlow ? 'failures: 0, warnings: 1\n' : 'All is well.\n' })
    expect(stdout).toMatch(/^(ok {4}|warn {2})latency: p50 /m)
    for (const check of [
      'node',
      'config',
      'redis',
      'redis version',
      'eviction',
      'persistence',
      'memory',
      'replicas',
      'scripts',
      'clock',
    ]) {
      expect(stdout).toMatch(new RegExp(`^ok {4}${check}: `, 'm'))
    }
    expect(stdout).toMatch(/^ok {4}queue default: not there yet/m)
  })

  it('says what to do about a server that would lose work, and ends with 4', async () => {
    await client.call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await client.call('CONFIG', 'SET', 'appendonly', 'no')
    onTestFinished(async () => {
      await client.call('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    })

    const found = await report(['--redis', redis.url])

    expect(found).toMatchObject({ code: 4, failures: 1 })
    expect(verdictOf(found, 'eviction')).toMatchObject({
      verdict: 'failure',
      fix: expect.stringContaining('noeviction'),
    })
    expect(verdictOf(found, 'persistence')).toMatchObject({
      verdict: 'warning',
      fix: expect.stringContaining('appendonly'),
    })
  })

  it('says that more replicas are asked for than there are', async () => {
    const config = `export default { redis: '${redis.url}', durability: { replicas: 2 } }`

    const found = await report([], { 'sluice.config.mjs': config })

    expect(found.code).toBe(4)
    expect(verdictOf(found, 'replicas')).toMatchObject({ verdict: 'failure', found: '0, and durability asks for 2' })
  })

  it.each([
    { what: 'cannot be read', text: 'export default {', says: /could not be loaded/ },
    { what: 'has an unknown option', text: 'export default { prot: 1 }', says: /did you mean "port"/ },
    {
      what: 'has a limit that is none',
      text: "export default { queues: { web: { limits: { queue: 'fast' } } } }",
      says: /must be a rate/,
    },
    {
      what: 'has an unknown option for calls',
      text: "export default { queues: { web: { http: { allowHost: ['a.example'] } } } }",
      says: /queue "web": http\.allowHost is not an option; did you mean "allowHosts"/,
    },
    {
      what: 'has a schedule that is never due',
      text: "export default { queues: { web: { schedules: { nightly: { job: { type: 'T' } } } } } }",
      says: /schedules\.nightly\.cron or every must be given/,
    },
    {
      what: 'lets a queue share limits of two groups',
      text: "export default { limits: { a: '5/s', b: '5/s' }, queues: { web: { shares: ['a', 'b'] } } }",
      says: /queues\.web\.shares cannot be shared limits of different groups/,
    },
    {
      what: 'has a store that is none',
      text: 'export default { redis: 6379, commandTimeoutMs: 0 }',
      says: /config: .* redis\S* must be .* commandTimeoutMs must be/,
    },
    { what: 'opens the server to all', text: "export default { host: '0.0.0.0' }", says: /refuses to start/ },
  ])('ends with 2 when the config file $what, and says so', async ({ text, says }) => {
    const { code, stdout } = await doctor([], { 'sluice.config.mjs': text })

    expect(code).toBe(2)
    expect(stdout).toMatch(says)
    expect(stdout).toMatch(/\n {6}→ /)
  })

  it('ends with 8 when Redis does not answer', async () => {
    const found = await report(['--redis', 'redis://:secret@127.0.0.1:1'])

    expect(found.code).toBe(8)
    expect(verdictOf(found, 'redis')).toMatchObject({ verdict: 'failure', fix: expect.stringContaining('start it') })
    expect(JSON.stringify(found)).not.toContain('secret')
  })

  it('ends with 8 when Redis is a replica, and says to name the master', async () => {
    await client.call('REPLICAOF', '127.0.0.1', '1')
    onTestFinished(async () => {
      await client.call('REPLICAOF', 'NO', 'ONE')
    })

    const found = await report(['--redis', redis.url])

    expect(found.code).toBe(8)
    expect(verdictOf(found, 'redis')).toMatchObject({
      verdict: 'failure',
      found: expect.stringContaining('read-only replica'),
      fix: expect.stringContaining('name the master'),
    })
  })

  it('ends with 4 when Node is too old, and looks at the rest all the same', async () => {
    const older = "Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.20.1'}})"
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(older)}` }

    const { code, stdout } = await sluice(['doctor', '--redis', redis.url, '--json'], { env })

    const found = JSON.parse(stdout) as Report
    expect({ code, failures: found.failures }).toEqual({ code: 4, failures: 1 })
    expect(verdictOf(found, 'node')).toMatchObject({ verdict: 'failure', found: '20.20.1' })
    expect(verdictOf(found, 'latency')).toBeDefined()
  })

  it('refuses to repair without an audit', async () => {
    expect(await doctor(['--repair'])).toMatchObject({ code: 2, stderr: 'sluice: --repair needs --audit\n' })
  })
})

describe('sluice doctor --audit', () => {
  it('finds a count that is wrong and changes nothing, and puts it right when it is asked to', async () => {
    const app = new Sluice({ redis: redis.url, log: () => {} })
    onTestFinished(() => app.close())
    const queue = app.queue('web', { limits: { queue: '5/s' } })
    await queue.submit({ type: 'T', tenant: 'acme' })
    await client.call('HSET', 'sluice:{web}:web:running', 'acme', 2)
    const asked = ['--redis', redis.url, '-q', 'web', '--audit']

    const looked = await report(asked)
    const again = await report(asked)
    const repaired = await doctor([...asked, '--repair'])
    const after = await report(asked)

    expect(looked).toMatchObject({ code: 4, differences: [{ queue: 'web' }] })
    expect(again.differences).toEqual(looked.differences)
    expect(verdictOf(looked, 'audit of web')).toMatchObject({
      verdict: 'failure',
      fix: expect.stringContaining('--repair'),
    })
    expect(repaired.code).toBe(0)
    expect(repaired.stdout).toMatch(/audit of web: put right: \d/)
    expect(verdictOf(after, 'audit of web')).toMatchObject({ verdict: 'ok' })
    expect(await queue.limits.list()).toMatchObject([{ limit: 5 }])
    expect(verdictOf(after, 'queue web')).toMatchObject({
      verdict: 'warning',
      found: expect.stringContaining('no process takes any'),
    })
  })
})
