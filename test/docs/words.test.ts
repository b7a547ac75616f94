import { expect, it } from 'vitest'
import { documents, read } from './markdown.ts'

/** Documents without what is code in them, in which `canceled` is the name of a state. */
function prose(text: string): string {
  return text
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`]*`/g, '')
    .replace(/\*\*[^*]*\*\*/g, '')
}

it('cancelled has two l, except in names', () => {
  const others = documents().filter((path) => /\b[Cc]ancel(ed|ing)\b/.test(prose(read(path))))

  expect(others).toEqual([])
})
