import { linkSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { assertOtherFile } from './same-file.ts'

let folder: string
let input: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-file-'))
  input = join(folder, 'calls.ndjson')
  writeFileSync(input, '')
  symlinkSync('calls.ndjson', join(folder, 'soft'))
  symlinkSync(folder, join(folder, 'here'))
  linkSync(input, join(folder, 'hard'))
  writeFileSync(join(folder, 'other'), '')
})
afterAll(() => rmSync(folder, { recursive: true }))

it.each(['calls.ndjson', './calls.ndjson', 'soft', 'here/calls.ndjson', 'hard'])(
  '%s is the file that is read',
  async (name) => {
    const output = `${folder}/${name}`

    await expect(assertOtherFile('--out', { input, output })).rejects.toMatchObject({
      exit: 'usage',
      message: `--out ${output} is ${input} itself and would replace it: name another file`,
    })
  },
)

it.each(['other', 'missing', 'no/such/folder'])('%s is another file', async (name) => {
  await expect(assertOtherFile('--out', { input, output: join(folder, name) })).resolves.toBeUndefined()
})
