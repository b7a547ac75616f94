import { describe, expect, it } from 'vitest'
import { exportedNames } from './entry-points.ts'
import { codeIn, codeRows, read } from './markdown.ts'
import { literalValue, OptionSources } from './option-tables.ts'

const sources = new OptionSources()

/** The table under the heading of the interface: `| \`leaseMs\` | \`15_000\` | … |`; no code means no default. */
function tableIn(path: string, interfaceName: string): Record<string, unknown> {
  const rows = codeRows(read(path)).filter(({ heading }) => heading === interfaceName)
  return Object.fromEntries(rows.map(({ cells }) => [codeIn(cells[0]), literalValue(codeIn(cells[1]))]))
}

describe.each(sources.checkedInterfaces())('%s', (name) => {
  it('has in its comments the defaults that its rules set', () => {
    expect(Object.fromEntries(sources.documented(name))).toStrictEqual(Object.fromEntries(sources.checked(name)))
  })
})

const publicOptions = exportedNames('src/index.ts').filter((name) => sources.checkedInterfaces().includes(name))

describe.each(publicOptions)('docs/options.md, under the heading of %s', (name) => {
  it('lists every option with its default, and no other', () => {
    expect(tableIn('docs/options.md', name)).toStrictEqual(Object.fromEntries(sources.documented(name)))
  })
})
