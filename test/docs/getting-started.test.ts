import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../src/testing/redis-server.ts'
import { cliCommand } from '../cli/cli-process.ts'
import { folderWith, removeFolder } from '../cli/server-process.ts'
import { codeBlocks, read } from './markdown.ts'
import { type Ran, Shell } from './shell.ts'

const page = 'docs/guides/getting-started.md'

describe(`${page}, block by block`, () => {
  let shell: Shell
  let ports: { upstream: number; server: number }
  /** Fewer jobs than the page has, so that the test takes seconds. */
  const jobs = 1_000

  beforeAll(async () => {
    const folder = folderWith()
    ports = { upstream: await freePort(), server: await freePort() }
    writeFileSync(join(folder, 'sluice.config.mjs'), `export default { port: ${ports.server} }`)
    shell = new Shell(folder, { sluice: cliCommand() })
  })
  afterAll(async () => {
    await shell.close()
    await removeFolder(shell.folder)
  })

  const blocks = codeBlocks(read(page)).filter(({ language }) => language === 'sh')

  /** The block as a reader would type it, with the ports and the number of jobs of this test. */
  function run(number: number): Promise<Ran> {
    const text = blocks[number]?.text ?? ''
    return shell.run(
      text
        .replaceAll('7720', String(ports.upstream))
        .replaceAll('7717', String(ports.server))
        .replaceAll('100000', String(jobs)),
    )
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
    const upstream = await run(1)
    const performed = await run(2)

    expect(upstream.code).toBe(undefined)
    expect(performed).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/1000 of 1000 calls succeeded, 0 failed/),
    })
    const last = performed.stdout.trim().split('\n').at(-1) ?? ''
    expect(JSON.parse(last)).toMatchObject({ id: '1', result: { status: 200 } })
  })

  it('submits, follows and downloads with curl alone', async () => {
    const server = await run(3)
    const submitted = JSON.parse((await run(4)).stdout) as object
    const events = (await run(5)).stdout
    const lines = (await run(6)).stdout

    expect(server.code).toBe(undefined)
    expect(submitted).toMatchObject({ id: 'calls:acme:first', isSealed: true, accepted: jobs })
    expect(events).toMatch(/^event: progress$/m)
    expect(events).toMatch(/event: end\ndata: .*"state":"COMPLETED".*\n\n$/)
    expect(lines.trim()).toBe(String(jobs))
    const failed = readFileSync(join(shell.folder, 'answers.ndjson'), 'utf8').match(/"state":"failed"/g) ?? []
    expect(failed).toHaveLength(0)
  })
})
