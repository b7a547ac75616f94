import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { createProgram } from '../../src/cli/program.ts'
import { codeIn, codeRows, read } from './markdown.ts'

const rows = codeRows(read('docs/cli.md'))

/** Every command that does something, by what is typed: `sluice actions ls`. */
function leaves(command: Command, path: string): { path: string; command: Command }[] {
  if (command.commands.length === 0) return [{ path, command }]
  return command.commands.flatMap((child) => leaves(child, `${path} ${child.name()}`))
}

const commands = leaves(await createProgram(), 'sluice')

it('docs/cli.md lists every exit code with its meaning, each once, and no other', () => {
  const listed = rows.filter(({ heading }) => heading === 'Exit codes')

  expect(listed.map(({ cells }) => [codeIn(cells[0]), cells[1]])).toEqual(
    Object.values(exitCodes).map(({ code, meaning }) => [String(code), meaning]),
  )
})

it('docs/cli.md has a section for every command, and for no other', () => {
  const headings = Array.from(read('docs/cli.md').matchAll(/^### (sluice .*)$/gm), (match) => match[1])

  expect(headings).toEqual(commands.map(({ path }) => path))
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

  it('shows in its help an example that is a call of it', () => {
    let help = ''
    command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()

    const examples =
      help
        .split(/\nExamples?:\n/)[1]
        ?.trim()
        .split('\n') ?? []
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) expect(example).toContain(path)
  })

  it('has --json', () => {
    expect(command.options.map(({ long }) => long)).toContain('--json')
  })
})
