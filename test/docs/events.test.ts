import { expect, it } from 'vitest'
import { eventTypes } from '../../src/engine/events.ts'
import { codeIn, codeRows, read } from './markdown.ts'

it('docs/events.md lists every type of event, each once, and no other', () => {
  const listed = codeRows(read('docs/events.md')).map(({ cells }) => codeIn(cells[0]))

  expect(listed.sort()).toEqual([...eventTypes].sort())
})
