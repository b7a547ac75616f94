import { expect, it } from 'vitest'
import { exists, read } from './markdown.ts'

interface NamedTest {
  readonly file: string
  /** With `…` for what differs from case to case. */
  readonly title: string
}

function namedTests(): NamedTest[] {
  const lines = read('docs/guarantees.md').matchAll(/^- `([^`]+\.test\.ts)`: (.*)$/gm)
  return Array.from(lines).flatMap(([, file = '', rest = '']) =>
    Array.from(rest.matchAll(/"([^"]+)"/g), ([, title = '']) => ({ file, title })),
  )
}

function isThere({ file, title }: NamedTest): boolean {
  if (!exists(file)) return false
  const pieces = title.split('…').map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`\\((['\`])${pieces.join('.+')}\\1,`).test(read(file))
}

it('names tests by file and title that are there', () => {
  const named = namedTests()

  expect(named.length).toBeGreaterThan(20)
  expect(named.filter((test) => !isThere(test))).toEqual([])
})

it('names scenarios that are there', () => {
  const lines = Array.from(read('docs/guarantees.md').matchAll(/^- scenario (.*)$/gm), ([, rest = '']) => rest)
  const named = lines.flatMap((rest) => Array.from(rest.matchAll(/`([a-z-]+)`/g), ([, name = '']) => name))

  expect(named.length).toBeGreaterThan(1)
  const isThere = (name: string) => ['engine', 'bulk'].some((group) => exists(`scenario/${group}/${name}.ts`))
  expect(named.filter((name) => !isThere(name))).toEqual([])
})
