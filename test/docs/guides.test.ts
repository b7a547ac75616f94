import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { stopEmbeddedServer } from '../../src/store/embedded.ts'
import { read } from './markdown.ts'
import { snippetProject, snippetsOf } from './snippets.ts'

const execute = promisify(execFile)

/** Runs a program in a folder of its own, to its end. */
async function run(text: string): Promise<string> {
  const { folder, remove } = snippetProject([{ fileName: 'program.mts', text }])
  onTestFinished(async () => {
    await stopEmbeddedServer({ dataDir: join(folder, '.sluice') })
    remove()
  })
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  const { stdout } = await execute(process.execPath, ['--import', 'tsx', 'program.mts'], {
    cwd: folder,
    timeout: 50_000,
  })
  return stdout
}

it.each([
  'docs/guides/getting-started.md',
  'docs/guides/rate-limits.md',
  'docs/guides/fairness.md',
  'docs/guides/schedules.md',
])('%s is a program that runs to its end', async (path) => {
  const [program, ...others] = snippetsOf(path)

  await run(program?.text ?? '')

  expect(others).toEqual([])
})

it('the example of promotions sends everything, and nobody waits for the large customer', async () => {
  const printed = await run(read('examples/promotions/main.ts'))

  expect(printed).toMatch(/the partner saw 3200 calls, 0 too many\n$/)
  expect(printed).toContain('customer-a is done: 3000 sent, 0 failed')
  const ends = Array.from(printed.matchAll(/^(\S+) is done/gm), (match) => match[1])
  expect(ends.slice(0, 2).sort()).toEqual(['customer-b', 'customer-c'])
  expect(ends[2]).toBe('customer-a')
})
