import type { Command } from 'commander'
import { createProgram } from '../../src/cli/program.ts'

/** A command by what is typed: `sluice actions ls`. */
export interface CommandLine {
  readonly path: string
  readonly command: Command
}

/** Every command, groups of commands and `sluice` itself included. */
export async function allCommands(): Promise<CommandLine[]> {
  return withThoseBelow(await createProgram(), 'sluice')
}

function withThoseBelow(command: Command, path: string): CommandLine[] {
  const below = command.commands.flatMap((child) => withThoseBelow(child, `${path} ${child.name()}`))
  return [{ path, command }, ...below]
}

/** Those that do something. */
export function leaves(commands: readonly CommandLine[]): CommandLine[] {
  return commands.filter(({ command }) => command.commands.length === 0)
}

/** What its help shows, as it would be typed. */
export function examplesOf(command: Command): string[] {
  let help = ''
  command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp()
  const [, shown = ''] = help.split(/\nExamples?:\n/)
  return Array.from(shown.matchAll(/^ *\$ (.+)$/gm), ([, example = '']) => example)
}
