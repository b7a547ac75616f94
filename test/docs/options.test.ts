import { describe, expect, it } from 'vitest'
import { type LimitDefinition, parseLimit } from '../../src/limits/definition.ts'
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

describe.each(['TenantSettings', 'JobInput'])('docs/options.md, under the heading of %s', (name) => {
  it('lists every field with its default, and no other', () => {
    expect(tableIn('docs/options.md', name)).toStrictEqual(Object.fromEntries(sources.documented(name)))
  })
})

/** The least that each kind of limit needs, and the interface that says what else it may have. */
const limitKinds = [
  { name: 'BucketDefinition', least: { kind: 'bucket', limit: 500, windowMs: 1_000 } },
  { name: 'WindowDefinition', least: { kind: 'window', limit: 500, windowMs: 3_600_000 } },
  { name: 'QuotaDefinition', least: { kind: 'quota' } },
  { name: 'ConcurrencyDefinition', least: { kind: 'concurrency', max: 5 } },
] as const

describe.each(limitKinds)('docs/options.md, of a limit of kind $least.kind', ({ name, least }) => {
  const rows = codeRows(read('docs/options.md')).filter(({ heading }) => heading === 'Limits')
  const first = rows.findIndex(({ cells }) => cells[2]?.startsWith(`\`'${least.kind}'\``))
  const next = rows.findIndex(({ cells }, at) => at > first && codeIn(cells[0]) === 'kind')
  const own = rows.slice(first, next === -1 ? undefined : next).filter(({ cells }) => /^`\w+`$/.test(cells[0] ?? ''))
  const listed = Object.fromEntries(own.map(({ cells }) => [codeIn(cells[0]), literalValue(codeIn(cells[1]))]))

  it('lists every field with its default, and no other', () => {
    expect(listed).toStrictEqual(Object.fromEntries(sources.documented(name)))
  })

  it('has defaults that are what leaving them out means', () => {
    const given = Object.fromEntries(Object.entries(listed).filter(([, value]) => value !== undefined))

    expect(parseLimit('calls', { ...given, ...least } as LimitDefinition)).toEqual(parseLimit('calls', least))
  })
})
