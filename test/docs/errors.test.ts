import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { logEvents } from '../../src/engine/log.ts'
import { errorCodes } from '../../src/errors.ts'
import { codeIn, codeRows, read, root } from './markdown.ts'

function listedUnder(heading: string): string[] {
  const rows = codeRows(read('docs/errors.md')).filter((row) => row.heading === heading)
  return rows.map(({ cells }) => codeIn(cells[0])).sort()
}

it('docs/errors.md lists every error code, each once, and no other', () => {
  expect(listedUnder('Errors')).toEqual(Object.keys(errorCodes).sort())
})

it('docs/errors.md lists every event in the log, each once, and no other', () => {
  expect(listedUnder('Events in the log')).toEqual([...logEvents].sort())
})

// That nothing else is said, the compiler sees to.
it('every event that is listed is said somewhere', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?<!\.test|\.generated)\.ts$/.test(path) && path !== 'engine/log.ts')
    .map((path) => read(`src/${path}`))

  expect(logEvents.filter((event) => !files.some((text) => text.includes(`'${event}'`)))).toEqual([])
})
