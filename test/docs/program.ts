import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import { stopEmbeddedServer } from '../../src/store/embedded.ts'
import { snippetProject } from './snippets.ts'

const execute = promisify(execFile)

/** Runs a program in a folder of its own, to its end; one that would run on is closed after its last line. */
export async function runProgram(text: string): Promise<string> {
  const runsOn = /^const sluice\b/m.test(text) && !text.includes('sluice.close()')
  const ends = runsOn ? `${text}\nawait sluice.close()\n` : text
  const { folder, remove } = snippetProject([{ fileName: 'program.mts', text: ends }])
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
