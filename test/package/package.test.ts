import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { type InstalledPackage, installPackage } from './installed-package.ts'

const entries = [
  { name: 'sluice', source: () => import('../../src/index.ts') },
  { name: 'sluice/http', source: () => import('../../src/http/index.ts') },
  { name: 'sluice/nestjs', source: () => import('../../src/nestjs/index.ts') },
  { name: 'sluice/testing', source: () => import('../../src/testing/index.ts') },
] as const

describe('the package, packed and installed in an empty project', () => {
  let installed: InstalledPackage

  beforeAll(async () => {
    installed = await installPackage()
    return () => installed.remove()
  }, 180_000)

  it('holds what runs and what is read, and nothing else', () => {
    const unexpected = installed.files.filter(
      (path) => !/^(dist\/.+(\.js|\.d\.ts)|docs\/.+|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/.test(path),
    )

    expect(unexpected).toEqual([])
    expect(installed.files.filter((path) => path.includes('.test.'))).toEqual([])
    expect(installed.files).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'LICENSE']))
  })

  it('runs no script when it is installed', () => {
    const onInstall = ['preinstall', 'install', 'postinstall', 'prepare']

    expect(Object.keys(installed.manifest.scripts).filter((name) => onInstall.includes(name))).toEqual([])
  })

  it('has an entry for every name that is tested here', () => {
    const paths = Object.keys(installed.manifest.exports).filter((path) => path !== './package.json')

    expect(paths.map((path) => path.replace('.', 'sluice'))).toEqual(entries.map(({ name }) => name))
  })

  describe.each(entries)('$name', ({ name, source }) => {
    it('is imported by a module, with the names the source has', async () => {
      const expected = Object.keys(await source()).sort()

      const printed = await installed.run(
        'names.mjs',
        `import * as all from '${name}'; console.log(JSON.stringify(Object.keys(all).sort()))`,
      )

      expect(JSON.parse(printed)).toEqual(expected)
    })

    it('is required by CommonJS, with the same names', async () => {
      const expected = Object.keys(await source()).sort()

      const printed = await installed.run(
        'names.cjs',
        `console.log(JSON.stringify(Object.keys(require('${name}')).sort()))`,
      )

      expect(JSON.parse(printed).filter((key: string) => key !== '__esModule' && key !== 'module.exports')).toEqual(
        expected,
      )
    })

    it('leaves nothing running when it is only imported', async () => {
      const printed = await installed.run('idle.mjs', `import '${name}'; process.on('exit', () => console.log('over'))`)

      expect(printed.trim()).toBe('over')
    })
  })

  describe('sluice, the command', () => {
    /** Runs it in the project, and says how it ended. */
    const source = (...args: string[]) => `import { spawnSync } from 'node:child_process'
      import { writeFileSync } from 'node:fs'
      writeFileSync('sluice.config.ts', "import { defineConfig } from 'sluice'\\nexport default defineConfig({ prot: 1 as number })")
      const command = ${JSON.stringify(args)}
      const main = new URL('./node_modules/sluice/dist/cli/main.js', import.meta.url).pathname
      const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...command], { encoding: 'utf8' })
      console.log(JSON.stringify({ status, stdout, stderr }))`

    it('runs', async () => {
      const printed = await installed.run('version.mjs', source('--version'))

      expect(JSON.parse(printed)).toEqual({ status: 0, stdout: `${installed.manifest.version}\n`, stderr: '' })
    })

    it.runIf(process.versions.node.startsWith('20.'))(
      'says in one line what a config file in TypeScript needs',
      async () => {
        const { status, stderr } = JSON.parse(await installed.run('serve.mjs', source('serve', '--port', '0')))

        expect(status).toBe(2)
        expect(stderr).toMatch(/^sluice: .*sluice\.config\.ts is TypeScript, .*install tsx in the project, .*\n$/)
      },
    )

    it('reads a config file in TypeScript with the tsx of the project, though that is of no modules', async () => {
      const tsx = fileURLToPath(new URL('..', import.meta.resolve('tsx')))
      const link = `import { symlinkSync } from 'node:fs'; symlinkSync(${JSON.stringify(tsx)}, 'node_modules/tsx')\n`
      const { status, stderr } = JSON.parse(await installed.run('tsx.mjs', link + source('serve', '--port', '0')))

      expect(status).toBe(2)
      expect(stderr).toMatch(/^sluice: .*prot is not an option; did you mean "port"\?.*\n$/)
    })
  })

  it('has what tests need, for a runner that knows nothing of it', async () => {
    const printed = await installed.run(
      'mail.test.mjs',
      `import assert from 'node:assert/strict'
       import { after, test } from 'node:test'
       import { finished, memoryUpstream, startSluice, startUpstream } from 'sluice/testing'
       const { sluice, clock, close } = await startSluice()
       const http = await startUpstream({ limit: 1 })
       after(() => Promise.all([close(), http.stop()]))
       test('a mail is sent when it is due', async () => {
         const upstream = memoryUpstream({ limit: 1, clock })
         const queue = sluice.queue('mail')
         queue.process('SEND', async () => (await upstream.fetch('https://mail.example/')).status)
         const { id } = await queue.submit({ type: 'SEND', payload: 1, delayMs: 3_600_000 })
         assert.deepEqual((await clock.runUntil(finished(queue, id))).result, 200)
         assert.equal(clock.now(), 3_600_000)
         assert.equal((await fetch(http.url)).status, 200)
       })`,
    )

    // Versions of Node differ in what they print by default.
    expect(printed).toMatch(/^(#|ℹ) pass 1$/m)
    expect(printed).toMatch(/^(#|ℹ) fail 0$/m)
  })

  it('brings its types along, also for a compiler that reads every declaration', async () => {
    const problems = await installed.compile(
      'consumer.mts',
      `import { Sluice } from 'sluice'
       import { type Job, type Queue } from 'sluice'
       import { getQueueToken, Process } from 'sluice/nestjs'
       import * as testing from 'sluice/testing'
       export const sluice: Sluice = new Sluice({ redis: 'embedded' })
       // @ts-expect-error: a number is no address, so this line must not compile
       export const misuse = new Sluice({ redis: 7 })
       class Processor {
         send(job: Job<{ to: string }>, { signal }: { signal: AbortSignal }) { return [job.payload.to, signal] }
         wrong(job: { to: string }) { return job }
       }
       const descriptor = <Name extends keyof Processor>(name: Name) =>
         ({ value: Processor.prototype[name] }) as TypedPropertyDescriptor<Processor[Name]>
       Process<{ to: string }>('SEND')(Processor.prototype, 'send', descriptor('send'))
       // @ts-expect-error: another payload than the method takes
       Process<{ from: string }>('SEND')(Processor.prototype, 'send', descriptor('send'))
       // @ts-expect-error: the method takes no job
       Process('SEND')(Processor.prototype, 'wrong', descriptor('wrong'))
       export const token: string = getQueueToken('mail')
       export type { Queue }
       export { testing }`,
    )

    expect(problems).toBe('')
  })
})
