import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { CliProcess } from './cli-process.ts'
import { folderWith, removeFolder, ServerProcess } from './server-process.ts'

let folder: string
let upstream: Upstream
let server: ServerProcess

beforeAll(async () => {
  upstream = await startUpstream({ limit: 1_000 })
  folder = folderWith()
  const host = new URL(upstream.url).host
  const allowed = ['--allow-host', host, '--allow-private', '127.0.0.1']
  server = await ServerProcess.start(folder, ['--queue', 'web=200/s,slow=5/s', ...allowed])
})
afterAll(async () => {
  await server.stop()
  await upstream.stop()
  await removeFolder(folder)
})

function payloads(count: number, path = 'fine'): string {
  return Array.from(
    { length: count },
    (_, index) => `${JSON.stringify({ url: `${upstream.url}/${path}/${index}` })}\n`,
  ).join('')
}

/** Submits payloads from standard input. */
function submit(args: readonly string[], input: string) {
  return server.sluice(['submit', '-', '--tenant', 'acme', '--payloads', ...args], { input })
}

describe('sluice submit', () => {
  it('submits standard input as an action, waits for its end, and its results can be had', async () => {
    const end = await submit(['-q', 'web', '--action', 'first', '--keep-results', '--wait', '--json'], payloads(50))
    const results = await server.data(['actions', 'results', 'web:acme:first'])
    const [action] = await server.data(['actions', 'get', 'web:acme:first'])

    expect(end.code).toBe(0)
    expect(JSON.parse(end.stdout)).toMatchObject({
      id: 'web:acme:first',
      state: 'COMPLETED',
      counts: { succeeded: 50 },
    })
    expect(end.stderr).toMatch(/web:acme:first: 50\/50, 100 %, COMPLETED\n$/)
    expect(results).toHaveLength(50)
    expect(results[0]).toMatchObject({ state: 'succeeded', result: { status: 200 } })
    expect(action).toMatchObject({ state: 'COMPLETED', attempts: 50, errors: [] })
  })

  it('ends with 5 when jobs failed', async () => {
    const job = JSON.stringify({ payload: { url: 'http://not-allowed.example' } })

    const end = await server.sluice(['submit', '-', '--tenant', 'acme', '-q', 'web', '--wait'], { input: job })

    expect(end.code).toBe(5)
    expect(end.stdout).toMatch(/: COMPLETED, 0 succeeded, 1 failed\n$/)
  })

  it('does nothing twice when it is repeated under its name', async () => {
    const args = ['-q', 'web', '--action', 'repeated', '--wait', '--json']

    const first = await submit(args, payloads(5))
    const second = await submit(args, payloads(5))

    expect([first.code, second.code]).toEqual([0, 0])
    expect(JSON.parse(second.stdout)).toMatchObject({ counts: { total: 5, succeeded: 5 } })
  })

  it('counts and submits nothing with --dry-run, also without a server', async () => {
    const end = await server.sluice(['submit', '-', '-t', 'acme', '--payloads', '--dry-run', '--json'], {
      input: payloads(7),
      env: { SLUICE_URL: 'http://127.0.0.1:1' },
    })

    expect(end).toMatchObject({ code: 0, stdout: '{"jobs":7,"submitted":false}\n' })
  })

  it('refuses a line that is no job, with its number', async () => {
    const end = await server.sluice(['submit', '-', '-t', 'acme', '-q', 'web'], {
      input: '{"payload":1}\n{"url":"x"}\n',
    })

    expect(end.code).toBe(2)
    expect(end.stderr).toMatch(
      /^sluice: standard input:2: is no job such as .*add --payloads; to go on, submit the same jobs with --action \S+\n$/,
    )
  })

  it('ends with 7 when the action does not end in time, which goes on', async () => {
    const end = await submit(['-q', 'slow', '--action', 'late', '--wait', '--timeout', '1s'], payloads(100))
    const [action] = await server.data(['actions', 'get', 'slow:acme:late'])

    expect(end.code).toBe(7)
    expect(end.stderr).toMatch(/slow:acme:late did not end within 1 s; it goes on\n$/)
    expect(action).toMatchObject({ state: 'RUNNING' })
  })
})

describe('sluice actions', () => {
  it('lists them, newest first, as a table for people', async () => {
    await submit(['-q', 'web', '--action', 'listed'], payloads(1))

    const { stdout } = await server.sluice(['actions', 'ls', '-q', 'web', '--limit', '1'])

    expect(stdout).toMatch(/^id +state +total .*\nweb:acme:listed +[A-Z]+ +1 /)
  })

  it('adds jobs to one that is open, and seals it', async () => {
    await submit(['-q', 'web', '--action', 'open', '--no-seal'], payloads(2))
    const added = await server.sluice(['actions', 'add', 'web:acme:open', '--payloads'], { input: payloads(3, 'more') })
    await server.data(['actions', 'seal', 'web:acme:open'])
    const watched = await server.sluice(['actions', 'watch', 'web:acme:open', '--json'])
    const late = await server.sluice(['actions', 'add', 'web:acme:open', '--payloads'], { input: payloads(1) })

    expect(added.stdout).toBe('web:acme:open: 3 jobs more, 5 in all\n')
    expect(watched.code).toBe(0)
    expect(JSON.parse(watched.stdout.trim().split('\n').at(-1) ?? '')).toMatchObject({ state: 'COMPLETED', done: 5 })
    expect(late.code).toBe(4)
  })

  it('cancels one, and whoever watches it is told with 6', async () => {
    await submit(['-q', 'slow', '--action', 'doomed'], payloads(100))
    const watcher = new CliProcess(['actions', 'watch', 'slow:acme:doomed', '--url', server.url])
    await watcher.said(/slow:acme:doomed: \d/)

    const [canceled] = await server.data(['actions', 'cancel', 'slow:acme:doomed'])
    const end = await watcher.ended()

    expect(canceled).toMatchObject({ state: 'CANCELED' })
    expect(end.code).toBe(6)
  })

  it('stops watching at Ctrl-C with 130, and the action goes on', async () => {
    await submit(['-q', 'slow', '--action', 'watched'], payloads(100))
    const watcher = new CliProcess(['actions', 'watch', 'slow:acme:watched', '--url', server.url])
    await watcher.said(/slow:acme:watched: \d/)

    watcher.signal('SIGINT')
    const end = await watcher.ended()

    expect(end.code).toBe(130)
    expect(end.stderr).toMatch(/the action goes on\.\n$/)
  })

  it('retries the failed jobs of one as another', async () => {
    const job = JSON.stringify({ payload: { url: 'http://not-allowed.example' } })
    await server.sluice(['submit', '-', '-t', 'acme', '-q', 'web', '--action', 'broken', '--wait'], { input: job })

    const [retried] = await server.data(['actions', 'retry', 'web:acme:broken'])

    expect(retried).toMatchObject({ tenant: 'acme', name: 'broken.retry-1', counts: { total: 1 } })
  })

  it('ends with 3 for one that is not there, and with 4 for results that were not kept', async () => {
    await submit(['-q', 'web', '--action', 'unkept', '--wait'], payloads(1))

    const missing = await server.sluice(['actions', 'get', 'web:acme:nothing'])
    const unkept = await server.sluice(['actions', 'results', 'web:acme:unkept'])

    expect([missing.code, unkept.code]).toEqual([3, 4])
    expect(unkept.stderr).toMatch(/keeps no results/)
  })
})
