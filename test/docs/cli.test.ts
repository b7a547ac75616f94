import { describe, expect, it } from 'vitest'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { bucketOf } from '../../src/cli/run/run-calls.ts'
import { effectivePerSecond, parseLimit } from '../../src/limits/definition.ts'
import type { BucketRule } from '../../src/store/settings.ts'
import { allCommands, examplesOf, leaves } from './command-lines.ts'
import { codeBlocks, codeIn, codeRows, read } from './markdown.ts'

const page = read('docs/cli.md')
const rows = codeRows(page)

const commands = leaves(await allCommands())

it('docs/cli.md lists every exit code with its meaning, each once, and no other', () => {
  const listed = rows.filter(({ heading }) => heading === 'Exit codes')

  expect(listed.map(({ cells }) => [codeIn(cells[0]), cells[1]])).toEqual(
    Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
  )
})

it('docs/cli.md has a section for every command, and for no other', () => {
  const headings = Array.from(page.matchAll(/^### (sluice .*)$/gm), (match) => match[1])

  expect(headings).toEqual(commands.map(({ path }) => path))
})

it('docs/cli.md says how much of a rate sluice run gives out', () => {
  const perSecond = (isLocal: boolean) => {
    const rule = parseLimit('rate', bucketOf('500/s', { isLocal })) as BucketRule
    return Math.round(effectivePerSecond(rule, rule.jitter))
  }

  expect(page.replaceAll(/\s+/g, ' ')).toContain(
    `it gives out a little less: ${perSecond(false)} a second, ${perSecond(true)} to this machine itself.`,
  )
})

describe.each(commands)('$path', ({ path, command }) => {
  it('has all its options in docs/cli.md, with their words and defaults, and no other', () => {
    const listed = rows.filter(({ heading }) => heading === path)
    const common = ['--json', '--debug', '--url', '--key']

    const expected = command.options
      .filter(({ long }) => !common.includes(long ?? ''))
      .map(({ flags, description, defaultValue, negate, argChoices }) => [
        flags,
        argChoices ? `${description}: ${argChoices.join(', ')}` : description,
        defaultValue === undefined || negate ? '' : String(defaultValue),
      ])
    expect(listed.map(({ cells }) => [codeIn(cells[0]), cells[1], codeIn(cells[2])])).toEqual(expected)
  })

  it('has the examples of its help in docs/cli.md', () => {
    const [, section = ''] = page.split(`\n### ${path}\n`)
    const [block] = codeBlocks(section)

    expect(block?.text.split('\n')).toEqual(examplesOf(command))
  })

  it('has --json', () => {
    expect(command.options.map(({ long }) => long)).toContain('--json')
  })
})
