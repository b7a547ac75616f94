import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { createProgram } from '../../src/cli/program.ts'
import { CliProcess, sluice } from './cli-process.ts'

describe('the command line', () => {
  it('shows its commands when it is asked for help', async () => {
    const { code, stdout, stderr } = await sluice(['--help'])

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const command of (await createProgram()).commands) {
      expect(stdout).toContain(`  ${command.name()}`)
    }
  })

  it('loads of its commands only the one that is called', async () => {
    const namesFor = async (...args: string[]) => (await createProgram(args)).commands.map((command) => command.name())

    expect(await namesFor('run', '--help')).toEqual(['run'])
    expect(await namesFor('--version')).toEqual([])
    expect(await namesFor('demmo')).toEqual(await namesFor())
  })

  it('ends with 2 when it is not told what to do, and shows the help on standard error', async () => {
    const { code, stdout, stderr } = await sluice([])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('Usage: sluice')
  })

  it('guesses which command was meant', async () => {
    const end = await sluice(['demmo'])

    expect(end).toMatchObject({
      code: 2,
      stdout: '',
      stderr: "sluice: unknown command 'demmo'; did you mean demo? (see sluice --help)\n",
    })
  })

  it('guesses which option was meant', async () => {
    const end = await sluice(['demo', '--limt', '3'])

    expect(end).toMatchObject({
      code: 2,
      stderr: "sluice: unknown option '--limt'; did you mean --limit? (see sluice demo --help)\n",
    })
  })

  it('says what a value must be, in one line', async () => {
    const { code, stderr } = await sluice(['demo', '--limit', 'many'])

    expect(code).toBe(2)
    expect(stderr).toMatch(/^sluice: .*'many' is invalid. It must be a whole number from 1 to 1000000.*\n$/)
  })

  it('says errors as a problem document with --json', async () => {
    const { code, stdout, stderr } = await sluice(['demo', '--limit', 'many', '--json'])

    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toMatchObject({ title: expect.any(String), detail: expect.any(String), exitCode: 2 })
  })

  it('ends with the same exit code when nobody hears what it says', async () => {
    const process = new CliProcess(['demo', '--limit', 'many'])
    process.stopListening()

    expect(await process.ended()).toMatchObject({ code: 2, signal: null })
  })

  it('shows the stack only with --debug', async () => {
    const plain = await sluice(['demo', '--limit', 'many'])
    const debug = await sluice(['demo', '--limit', 'many', '--debug'])

    expect(plain.stderr).not.toContain('    at ')
    expect(debug.stderr).toContain('    at ')
  })
})

describe('an option that would do nothing', () => {
  it.each([
    ['demo --limit 5', '--limit needs --only-upstream: the demo has a plan of its own'],
    ['demo --port 7720', '--port needs --only-upstream: the demo takes a free one'],
    ['submit - -t acme --timeout 5s', '--timeout needs --wait'],
    ['top --once --interval 5s', '--once looks once, and has no use for --interval'],
  ])('is refused: %s', async (line, says) => {
    expect(await sluice(line.split(' '))).toMatchObject({ code: 2, stdout: '', stderr: `sluice: ${says}\n` })
  })
})

describe('a command that is refused', () => {
  it('ends with what the answer means', async () => {
    const codes = { 400: 2, 401: 9, 403: 9, 404: 3, 409: 4, 410: 3, 429: 10, 500: 1, 503: 8 }
    const statuses = Object.keys(codes)
    // The path names the status that is wanted.
    const server = createServer((request, response) => {
      const status = Number(/queues\/(\d+)/.exec(request.url ?? '')?.[1])
      response.writeHead(status, { 'content-type': 'application/problem+json' })
      response.end(JSON.stringify({ title: 'no', detail: `it said ${status}` }))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    const ends = await Promise.all(statuses.map((status) => sluice(['limits', 'ls', '-q', status, '--url', url])))
    server.close()

    expect(Object.fromEntries(statuses.map((status, at) => [status, ends[at]?.code]))).toEqual(codes)
    for (const [at, status] of statuses.entries()) expect(ends[at]?.stderr).toContain(`it said ${status}`)
  })
})

describe('a sweep of dead letters', () => {
  it('goes on from cursor to cursor, does not repeat itself, and takes its time where nothing is to be taken yet', async () => {
    const steps = [{ taken: 1, cursor: 'a' }, { taken: 0, cursor: 'a' }, { taken: 1, cursor: 'b' }, { taken: 1 }]
    const asked: { cursor?: string; at: number }[] = []
    const server = createServer((request, response) => {
      void json(request).then((body) => {
        asked.push({ ...(body as { cursor?: string }), at: performance.now() })
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify(steps[asked.length - 1]))
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

    const { code, stdout, stderr } = await sluice([
      'dead',
      'retry',
      '--all',
      '--rate',
      '1/h',
      '-q',
      'web',
      '--url',
      url,
    ])
    server.close()

    expect([code, stdout]).toEqual([0, '3 dead letters run again\n'])
    expect(asked.map(({ cursor }) => cursor)).toEqual([undefined, 'a', 'a', 'b'])
    expect(stderr.match(/--cursor \w/g)).toEqual(['--cursor a', '--cursor b'])
    expect((asked[2]?.at ?? 0) - (asked[1]?.at ?? 0)).toBeGreaterThan(900)
  })
})
