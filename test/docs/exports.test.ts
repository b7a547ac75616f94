import { describe, expect, it } from 'vitest'
import { exportedNames } from './entry-points.ts'
import { codeIn, codeRows, read } from './markdown.ts'

describe.each([
  { entry: 'sluice', path: 'src/index.ts' },
  { entry: 'sluice/http', path: 'src/http/index.ts' },
  { entry: 'sluice/nestjs', path: 'src/nestjs/index.ts' },
  { entry: 'sluice/testing', path: 'src/testing/index.ts' },
])('docs/api.md, under the heading of $entry', ({ entry, path }) => {
  it('lists every export, each once, and no other', () => {
    const listed = codeRows(read('docs/api.md'))
      .filter(({ heading }) => heading === entry)
      .map(({ cells }) => codeIn(cells[0]))

    expect(listed.sort()).toEqual(exportedNames(path))
  })
})
