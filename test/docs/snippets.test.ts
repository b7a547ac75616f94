import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { codeBlocks, documents, read, root } from './markdown.ts'
import { type Snippet, snippetProject, snippetsOf } from './snippets.ts'

const execute = promisify(execFile)

function projectOf(snippets: readonly Snippet[]): string {
  const { folder, remove } = snippetProject(snippets)
  onTestFinished(remove)
  return folder
}

it('every TypeScript block of the README, the guides and the page of the command line compiles', async () => {
  // The blocks of the guide to NestJS are files of an application: test/nestjs/example.test.ts builds it.
  const paths = documents().filter((path) => /^(README|docs\/cli|docs\/guides\/(?!nestjs).*)\.md$/.test(path))
  const folder = projectOf(paths.flatMap(snippetsOf))

  const compiler = join(root, 'node_modules/.bin/tsc')
  const problems = await execute(compiler, ['--project', folder], { cwd: folder }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )

  expect(problems).toBe('')
})

it('the first example of the README is no longer than a screen', () => {
  const example = codeBlocks(read('README.md')).find(({ language }) => language === 'ts')

  expect(example?.text.split('\n').length).toBeLessThanOrEqual(24)
})

it('the example program is the one the README shows', () => {
  const example = codeBlocks(read('README.md')).find(({ language }) => language === 'ts')

  expect(read('examples/first-steps.ts').trim()).toBe(example?.text.trim())
})
