import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { filesNeeding } from './files-needing.ts'

function folderWith(files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-files-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

it('finds the files that start a program, by themselves, through imports and in child processes', () => {
  const folder = folderWith({
    'starts.ts': `spawn('some-server')`,
    'direct.test.ts': `import { start } from './starts.ts'`,
    'far.ts': `export { start } from './starts.ts'\nimport type { Near } from './near.ts'`,
    'near.ts': `import { far } from './far.ts'`,
    'circle.test.ts': `import { near } from './near.ts'`,
    'child.test.ts': `fork(new URL('starts.ts', import.meta.url))`,
    'innocent.test.ts': `import { it } from 'vitest' // no some-server here`,
  })
  const names = ['direct.test.ts', 'circle.test.ts', 'child.test.ts', 'innocent.test.ts']

  const found = filesNeeding(
    'some-server',
    names.map((name) => join(folder, name)),
  )

  expect(found).toEqual(names.slice(0, 3).map((name) => join(folder, name)))
})
