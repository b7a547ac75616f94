import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { freePort, startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { startUpstream, type Upstream } from '../../src/testing/upstream.ts'
import { cliCommand } from '../cli/cli-process.ts'
import { folderWith, removeFolder } from '../cli/server-process.ts'
import { guidePages, isRunElsewhere, runElsewhere } from './guide-pages.ts'
import { type CodeBlock, codeBlocks, read } from './markdown.ts'
import { Scene } from './scene.ts'
import { Shell } from './shell.ts'

const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string>>

function blocksOf(page: string, language: string): CodeBlock[] {
  if (isRunElsewhere(page, language)) return []
  return codeBlocks(read(page)).filter((block) => block.language === language)
}

function pagesWith(language: string): string[] {
  return guidePages.filter((page) => blocksOf(page, language).length > 0)
}

/** What npm does is not done again here: `npm test` is this, the demo and installing have tests of their own. */
const OF_NPM = /^npm (?:run (?<script>\S+)|(?<test>test)|install (?<packages>[^#]+)).*$/gm

describe('shell blocks of the README and the guides', () => {
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

  /** With the page's own server, where it starts one, else with one that has what its commands name. */
  async function shellFor(page: string): Promise<{ shell: Shell; typed(text: string): string }> {
    const folder = folderWith()
    onTestFinished(() => removeFolder(folder))
    const text = blocksOf(page, 'sh')
      .map((block) => block.text)
      .join('\n')
    const ports = { server: await freePort(), upstream: await freePort() }
    let url = `http://127.0.0.1:${ports.server}`
    let prepared = text
    if (/^sluice serve/m.test(text)) {
      writeFileSync(join(folder, 'sluice.config.mjs'), `export default { port: ${ports.server} }`)
    } else {
      const scene = await Scene.open({
        redis: redis.url,
        upstream: upstream.url,
        folder,
        prefix: `page-${guidePages.indexOf(page)}`,
      })
      onTestFinished(() => scene.close())
      prepared = await scene.prepare(text)
      url = scene.url
    }
    const shell = new Shell(folder, { sluice: cliCommand(), env: { SLUICE_URL: url } })
    onTestFinished(() => shell.close())
    const key = /normal:default:\d+:acme/.exec(prepared)?.[0] ?? ''
    return {
      shell,
      typed: (block) =>
        block
          .replace(OF_NPM, '')
          .replaceAll(/normal:default:\d+:acme/g, key)
          .replaceAll('redis://redis.internal:6379', redis.url)
          .replaceAll('http://127.0.0.1:7717', url)
          .replaceAll('7720', String(ports.upstream))
          .replaceAll('100000', '1000'),
    }
  }

  // A page may have fifteen commands, and each starts a process.
  it.each(pagesWith('sh'))('%s', { timeout: 180_000 }, async (page) => {
    const { shell, typed } = await shellFor(page)

    for (const { text, line } of blocksOf(page, 'sh')) {
      const { code = 0, stderr } = await shell.run(typed(text))

      expect(code, `line ${line}: ${stderr}`).toBe(0)
    }
  })

  it.each(pagesWith('sh'))('%s has npm run and install only what there is', (page) => {
    const known = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies })
    for (const { text } of blocksOf(page, 'sh')) {
      for (const { groups } of text.matchAll(OF_NPM)) {
        if (groups?.script !== undefined) expect(Object.keys(manifest.scripts ?? {})).toContain(groups.script)
        for (const name of groups?.packages?.trim().split(/\s+/) ?? []) expect(['sluice', ...known]).toContain(name)
      }
    }
  })
})

describe('other blocks of the README and the guides', () => {
  it.each(guidePages)('%s has only blocks that a test runs, reads or compares', (page) => {
    const languages = codeBlocks(read(page)).map(({ language }) => language)
    const known = ['sh', 'ts', 'json', 'conf']

    const other = languages.filter((language) => !known.includes(language) && !isRunElsewhere(page, language))
    expect(other).toEqual([])
  })

  it.each(pagesWith('json'))('%s has JSON that can be read', (page) => {
    for (const { text } of blocksOf(page, 'json')) expect(() => JSON.parse(text) as unknown).not.toThrow()
  })

  it.each(pagesWith('conf'))('%s has settings that a Redis server starts with', async (page) => {
    for (const { text } of blocksOf(page, 'conf')) {
      const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line))
      const config = Object.fromEntries(lines.map((line) => line.trim().split(/\s+(.*)/)) as [string, string][])

      const redis = await startRedis({ config })

      await redis.stop()
    }
  })

  it.each(runElsewhere)('$language of $page are run by a test that names both', ({ page, language, test }) => {
    expect(codeBlocks(read(page)).map((block) => block.language)).toContain(language)
    expect(read(test)).toContain(`'${page}`)
    // Programs of a page are found by `snippetsOf`.
    expect(read(test)).toMatch(language === 'ts' ? /'ts'|snippetsOf\(/ : `'${language}'`)
  })
})
