import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { CliProcess, sluice } from './cli-process.ts'
import { folderWith, removeFolder } from './server-process.ts'

let upstream: Upstream

beforeAll(async () => {
  upstream = await startUpstream({ limit: 500, latencyMs: 20 })
})
afterAll(() => upstream.stop())
beforeEach(() => upstream.forget())

/** A folder with a file of calls, until the end of the test. */
function folderOf(calls: readonly (object | string)[]): string {
  const lines = calls.map((call) => `${typeof call === 'string' ? call : JSON.stringify(call)}\n`)
  const folder = folderWith({ 'calls.ndjson': lines.join('') })
  onTestFinished(() => removeFolder(folder))
  return folder
}

function callsTo(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({
    method: 'POST',
    url: `${upstream.url}/${index + 1}`,
    body: {},
  }))
}

function linesOf(path: string): Record<string, unknown>[] {
  return readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('sluice run', () => {
  // That it takes no more than 11.2 s is the scenario `run-on-time`: here it would be a test of the machine.
  it('performs 5,000 calls at 500/s, none of them refused and none sooner than the limit has it', async () => {
    const startedAt = performance.now()

    const end = await sluice(['run', 'calls.ndjson', '--rate', '500/s', '--concurrency', '50', '--json'], {
      cwd: folderOf(callsTo(5_000)),
      goesFirst: true,
    })

    expect(end).toMatchObject({ code: 0 })
    expect(JSON.parse(end.stdout)).toMatchObject({ state: 'COMPLETED', calls: 5_000, succeeded: 5_000, failed: 0 })
    expect(await upstream.report()).toMatchObject({ calls: 5_000, violations: 0 })
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(10_000)
  })

  it('goes on after Ctrl-C with what was left, and performs nothing twice', async () => {
    const folder = folderOf(callsTo(1_500))
    const args = ['run', 'calls.ndjson', '--rate', '500/s', '--out', 'results.ndjson', '--json']

    const first = new CliProcess(args, { cwd: folder })
    await first.said(/(reading|calls): [\d,]+\/1,500/)
    first.signal('SIGINT')
    const interrupted = await first.ended()
    const seenBefore = (await upstream.report()).calls
    const second = await sluice(args, { cwd: folder })

    expect(interrupted.code).toBe(130)
    expect(interrupted.stderr).toContain('the same command goes on with the rest')
    expect(seenBefore).toBeGreaterThan(0)
    expect(seenBefore).toBeLessThan(1_500)
    expect(second.code).toBe(0)
    expect(JSON.parse(second.stdout)).toMatchObject({ succeeded: 1_500, failed: 0, doneBefore: seenBefore })
    const paths = (await upstream.calls()).map(({ path }) => path)
    expect(paths).toHaveLength(1_500)
    expect(new Set(paths).size).toBe(1_500)
    expect(linesOf(join(folder, 'results.ndjson')).map(({ id }) => id)).toEqual(
      Array.from({ length: 1_500 }, (_, index) => String(index + 1)),
    )
  })

  it('goes on after kill −9, and repeats no more than was in flight', async () => {
    const folder = folderOf(callsTo(1_500))
    const args = ['run', 'calls.ndjson', '--rate', '500/s', '--concurrency', '10', '--json']

    const first = new CliProcess(args, { cwd: folder })
    await first.said(/calls: [1-9][\d,]*\/1,500/)
    first.signal('SIGKILL')
    await first.ended()
    const second = await sluice(args, { cwd: folder })

    expect(second.code).toBe(0)
    expect(JSON.parse(second.stdout)).toMatchObject({ succeeded: 1_500, failed: 0 })
    const paths = (await upstream.calls()).map(({ path }) => path)
    expect(new Set(paths).size).toBe(1_500)
    expect(paths.length - 1_500).toBeLessThanOrEqual(10)
  })

  it('does not perform a file again that it has performed, unless told to', async () => {
    const folder = folderOf(callsTo(20))
    const args = ['run', 'calls.ndjson', '--rate', '500/s']

    const first = await sluice(args, { cwd: folder })
    const second = await sluice(args, { cwd: folder })
    const callsAfterSecond = (await upstream.report()).calls
    const again = await sluice([...args, '--again'], { cwd: folder })

    expect([first.code, second.code, again.code]).toEqual([0, 0, 0])
    expect(second.stderr).toContain('not performed again: see --again')
    expect(callsAfterSecond).toBe(20)
    expect((await upstream.report()).calls).toBe(40)
    expect(linesOf(join(folder, 'calls.results.ndjson'))).toHaveLength(20)
  })

  it('ends with 5 when calls failed, and says why; the others have their results', async () => {
    const gone = { id: 'wrong', url: `${upstream.url}/fine`, expect: [201] }
    const folder = folderOf([{ id: 'right', url: `${upstream.url}/right` }, gone])

    const end = await sluice(['run', 'calls.ndjson', '--rate', '100/s', '--retries', '0', '--json'], { cwd: folder })

    expect(end.code).toBe(5)
    expect(JSON.parse(end.stdout)).toMatchObject({ succeeded: 1, failed: 1 })
    expect(end.stderr).toMatch(/1 × .* answered 200, not 201/)
    expect(linesOf(join(folder, 'calls.results.ndjson'))).toMatchObject([
      { id: 'right', state: 'succeeded', result: { status: 200, body: { ok: true } } },
      { id: 'wrong', state: 'failed', error: { message: expect.any(String) } },
    ])
  })

  it.each([
    { what: 'is not JSON', lines: ['{"url":'], says: /calls\.ndjson:1: is not JSON/ },
    { what: 'has no url', lines: ['{"method":"GET"}'], says: /calls\.ndjson:1: .*url is required/ },
    {
      what: 'has an unknown field',
      lines: ['{"url":"http://a.example","methd":"GET"}'],
      says: /did you mean "method"/,
    },
    {
      what: 'has an id twice',
      lines: ['{"id":"a","url":"http://a.example"}', '{"id":"a","url":"http://b.example"}'],
      says: /calls\.ndjson:2: has the id "a" of an earlier line/,
    },
    { what: 'calls a private address', lines: ['{"url":"http://10.0.0.7/"}'], says: /10\.0\.0\.7; .*--allow-private/ },
  ])('refuses a file that $what, with 2 and one line, before the first call', async ({ lines, says }) => {
    const folder = folderOf(lines)

    const end = await sluice(['run', 'calls.ndjson', '--rate', '10/s'], { cwd: folder })

    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toMatch(says)
    expect(end.stderr.trim().split('\n')).toHaveLength(1)
  })

  it('writes results to standard output for -, and performs an empty file', async () => {
    const folder = folderOf(callsTo(2))
    writeFileSync(join(folder, 'empty.ndjson'), '')

    const piped = await sluice(['run', 'calls.ndjson', '--rate', '100/s', '--out', '-'], { cwd: folder })
    const empty = await sluice(['run', 'empty.ndjson', '--rate', '100/s', '--json'], { cwd: folder })

    expect([piped.code, empty.code]).toEqual([0, 0])
    expect(
      piped.stdout
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { id: string }).id),
    ).toEqual(['1', '2'])
    expect(piped.stderr).toContain('2 of 2 calls succeeded')
    expect(JSON.parse(empty.stdout)).toMatchObject({ state: 'COMPLETED', calls: 0, failed: 0 })
  })

  it('refuses a place for the results that is none before the first call', async () => {
    const folder = folderOf(callsTo(2))

    const end = await sluice(['run', 'calls.ndjson', '--rate', '1/s', '--out', 'no/where.ndjson'], { cwd: folder })

    expect(end).toMatchObject({ code: 2, stderr: 'sluice: no/where.ndjson: its folder does not exist\n' })
    expect((await upstream.report()).calls).toBe(0)
  })

  it('refuses to write its results over its calls', async () => {
    const folder = folderOf(callsTo(2))
    const calls = readFileSync(join(folder, 'calls.ndjson'), 'utf8')
    symlinkSync('calls.ndjson', join(folder, 'link.ndjson'))

    const args = ['run', 'link.ndjson', '--rate', '1/s', '--out', './calls.ndjson']
    const end = await sluice(args, { cwd: folder })

    expect(end).toMatchObject({ code: 2, stdout: '' })
    expect(end.stderr).toBe(
      'sluice: --out ./calls.ndjson is link.ndjson itself and would replace it: name another file\n',
    )
    expect(readFileSync(join(folder, 'calls.ndjson'), 'utf8')).toBe(calls)
    expect((await upstream.report()).calls).toBe(0)
  })

  it('refuses a rate that is none, and a file that is not there', async () => {
    const folder = folderOf([])

    const rate = await sluice(['run', 'calls.ndjson', '--rate', 'fast'], { cwd: folder })
    const file = await sluice(['run', 'nowhere.ndjson', '--rate', '1/s'], { cwd: folder })

    expect(rate).toMatchObject({ code: 2, stderr: expect.stringContaining("must be a rate such as '500/s'") })
    expect(file).toMatchObject({ code: 2, stderr: 'sluice: nowhere.ndjson: there is no such file\n' })
  })
})
