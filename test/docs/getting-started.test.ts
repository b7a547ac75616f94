import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CliProcess } from '../cli/cli-process.ts'
import { folderWith, removeFolder } from '../cli/server-process.ts'
import { codeBlocks, read, root } from './markdown.ts'

const execute = promisify(execFile)
const page = 'docs/guides/getting-started.md'

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe(`${page}, block by block`, () => {
  let folder: string
  let ports: { upstream: number; server: number }
  const servers: CliProcess[] = []
  /** Fewer jobs than the page has, so that the test takes seconds. */
  const jobs = 1_000

  beforeAll(async () => {
    folder = folderWith()
    ports = { upstream: await freePort(), server: await freePort() }
    mkdirSync(join(folder, 'bin'))
    const shim = join(folder, 'bin', 'sluice')
    const main = join(root, 'src/cli/main.ts')
    writeFileSync(
      shim,
      `#!/bin/sh\nexec "${process.execPath}" --import "${import.meta.resolve('tsx')}" "${main}" "$@"\n`,
    )
    chmodSync(shim, 0o755)
  })
  afterAll(async () => {
    for (const server of servers) {
      server.signal('SIGTERM')
      await server.ended()
    }
    await removeFolder(folder)
  })

  const blocks = codeBlocks(read(page)).filter(({ language }) => language === 'sh')

  /** The block as a reader would type it, with the ports and the number of jobs of this test. */
  function textOf(number: number): string {
    return (blocks[number]?.text ?? '')
      .replaceAll('7720', String(ports.upstream))
      .replaceAll('7717', String(ports.server))
      .replaceAll('100000', String(jobs))
  }

  async function run(number: number): Promise<string> {
    const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
    const { stdout } = await execute('bash', ['-euo', 'pipefail', '-c', textOf(number)], { cwd: folder, env })
    return stdout
  }

  async function start(number: number, options: readonly string[], announcement: RegExp): Promise<void> {
    const [, ...args] = textOf(number).trim().split(' ')
    const server = new CliProcess([...args, ...options], { cwd: folder })
    servers.push(server)
    await server.said(announcement)
  }

  it('has the blocks that are run below, and the demo, which has a test of its own', () => {
    expect(blocks.map(({ text }) => text.split(' ').slice(0, 2).join(' '))).toEqual([
      'npm run',
      'sluice demo',
      'seq 1000',
      'sluice serve',
      'seq 100000',
      'curl -sSN',
      'curl -sS',
    ])
    expect(blocks[0]?.text).toBe('npm run demo')
  })

  it('performs a file of calls', async () => {
    await start(1, [], /An upstream/)

    const printed = await run(2)

    expect(printed).toMatch(/1000 of 1000 calls succeeded, 0 failed/)
    expect(JSON.parse(printed.trim().split('\n').at(-1) ?? '')).toMatchObject({ id: '1', result: { status: 200 } })
  })

  it('submits, follows and downloads with curl alone', async () => {
    await start(3, ['--port', String(ports.server)], /described at/)

    const submitted = JSON.parse(await run(4)) as object
    const events = await run(5)
    const lines = await run(6)

    expect(submitted).toMatchObject({ id: 'calls:acme:first', isSealed: true, accepted: jobs })
    expect(events).toMatch(/^event: progress$/m)
    expect(events).toMatch(/event: end\ndata: .*"state":"COMPLETED".*\n\n$/)
    expect(lines.trim()).toBe(String(jobs))
    const failed = readFileSync(join(folder, 'answers.ndjson'), 'utf8').match(/"state":"failed"/g) ?? []
    expect(failed).toHaveLength(0)
  })
})
