import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { freePort, startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { BuiltPackage } from '../cli/built-package.ts'
import { folderWith, removeFolder } from '../cli/server-process.ts'
import { allCommands, examplesOf } from './command-lines.ts'
import { read } from './markdown.ts'
import { Scene } from './scene.ts'
import { Shell } from './shell.ts'

/** Used by examples; where one is missing this file is left out, see scripts/tools.mjs. */
const programs = ['jq']

/** Those that take long run once, elsewhere: where, and what must stand there. */
const runElsewhere: Readonly<Record<string, { file: string; as: string }>> = {
  'sluice demo': { file: 'test/cli/demo.test.ts', as: "['demo']" },
  'sluice demo --json | tail -n 1': { file: 'test/cli/demo.test.ts', as: "['demo', '--json']" },
}

const commands = await allCommands()
const examples = Array.from(new Set(commands.flatMap(({ command }) => examplesOf(command))))

/** What stands in the file behind `>`. */
function writtenTo(example: string, folder: string): string {
  const [, name] = / > (\S+)$/.exec(example) ?? []
  return name === undefined ? '' : readFileSync(join(folder, name), 'utf8')
}

describe('examples in the help of commands', () => {
  let redis: TestRedis
  let upstream: Upstream
  let built: ReturnType<typeof BuiltPackage.take>

  beforeAll(async () => {
    built = BuiltPackage.take()
    redis = await startRedis()
    upstream = await startUpstream({ limit: 1_000 })
  })
  afterAll(async () => {
    await upstream.stop()
    await redis.stop()
    built.remove()
  })

  async function shellFor(example: string): Promise<{ shell: Shell; typed: string }> {
    const folder = folderWith()
    onTestFinished(() => removeFolder(folder))
    const prefix = `example-${examples.indexOf(example)}`
    const scene = await Scene.open({ redis: redis.url, upstream: upstream.url, folder, prefix })
    onTestFinished(() => scene.close())
    const prepared = await scene.prepare(example)
    const shell = new Shell(folder, { sluice: [process.execPath, built.main], env: { SLUICE_URL: scene.url } })
    onTestFinished(() => shell.close())
    const port = String(await freePort())
    return { shell, typed: prepared.replace('redis://redis.internal:6379', redis.url).replace(/(?<=--port )\d+/, port) }
  }

  const runHere = examples.filter((example) => !(example in runElsewhere))

  it.each(runHere)('$ %s', async (example) => {
    const { shell, typed } = await shellFor(example)

    const ran = await shell.run(typed)
    const ended = ran.code === undefined ? await shell.interrupt() : ran

    expect(ended.code, ended.stderr).toBe(0)
    expect(`${ended.stdout}${ended.stderr}${writtenTo(example, shell.folder)}`).not.toBe('')
  })

  it.each(Object.entries(runElsewhere))('$ %s is run by another test', (example, { file, as }) => {
    expect(examples).toContain(example)
    expect(read(file)).toContain(as)
  })

  it.each(programs)('use %s', (program) => {
    expect(examples.some((example) => example.includes(` ${program} `))).toBe(true)
  })

  it.each(commands)('$path has one', ({ path, command }) => {
    const own = examplesOf(command)

    expect(own).not.toEqual([])
    for (const example of own) expect(example).toContain(path)
  })
})
