import { Command } from 'commander'
import { type ExitName, exitCodes } from './exit-codes.ts'
import { Output } from './output.ts'

/** What every command has beside its own options. */
interface CommonOptions {
  readonly json?: true
  readonly debug?: true
}

/** A command that was called: what it was given, and where it writes. */
export interface Invocation<Options extends object = object> {
  readonly output: Output
  readonly options: Options & CommonOptions
  /** As many as the signature of the command names; those in brackets may be missing. */
  readonly args: readonly (string | undefined)[]
}

export interface CommandTexts {
  /** One line in the list of commands. */
  readonly summary: string
  /** Further lines in its own help. */
  readonly details?: string
  /** Command lines as they would be typed. At least one. */
  readonly examples: readonly [string, ...string[]]
}

/** @param signature - Its name and arguments: `get <id>`. */
export function newCommand(signature: string, { summary, details, examples }: CommandTexts): Command {
  const [name = '', ...args] = signature.split(' ')
  const command = new Command(name)
    .summary(summary)
    .description(details === undefined ? summary : `${summary}\n\n${details}`)
  for (const argument of args) command.argument(argument)
  const heading = examples.length === 1 ? 'Example:' : 'Examples:'
  return command.addHelpText('after', `\n${heading}\n${examples.map((example) => `  $ ${example}`).join('\n')}`)
}

/** The exit of the command is what `run` answers. */
export function onCall<Options extends object>(
  command: Command,
  run: (invocation: Invocation<Options>) => Promise<ExitName>,
): Command {
  command
    .option('--json', 'data as JSON on standard output, one document a line; errors as JSON on standard error')
    .option('--debug', 'show the stack of an error')
  return command.action(async () => {
    const options: Options & CommonOptions = command.optsWithGlobals()
    const output = new Output({
      isJson: options.json === true,
      dataStream: process.stdout,
      talkStream: process.stderr,
      environment: process.env,
    })
    const exit = await run({ output, options, args: command.processedArgs as (string | undefined)[] })
    process.exitCode = exitCodes[exit].code
  })
}
