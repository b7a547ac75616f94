import { type Command, CommanderError } from 'commander'
import { CliError, problemOf, toCliError } from './cli-error.ts'
import { linesWithoutControls, withoutControls } from './control-characters.ts'
import { exitCodes } from './exit-codes.ts'
import { createProgram } from './program.ts'

/** Runs one command and sets the exit code of the process; whatever goes wrong is said in one line. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  // No command for people: shells ask it, and have no use for errors.
  if (args[0] === 'complete' && args[1] === '--') {
    const { completeWords } = await import('./completion.ts')
    const answer = await completeWords(args.slice(2)).catch(() => ':1\n')
    // The shell waits for the end of the process. A host that is still looked up or connected to would put it off.
    process.stdout.write(answer, () => process.exit())
    return
  }
  const program = await createProgram(args)
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    const told = error instanceof CommanderError ? usageError(error, program, args) : toCliError(error)
    if (told === undefined) return
    process.exitCode = exitCodes[told.exit].code
    // Options are not known when the parser itself has refused them.
    const isAsked = (option: string) => args.slice(0, args.indexOf('--') >>> 0).includes(option)
    if (isAsked('--json')) process.stderr.write(`${JSON.stringify(problemOf(told))}\n`)
    else process.stderr.write(`sluice: ${withoutControls(told.message.trim().replaceAll(/\s*\n\s*/g, ' '))}\n`)
    if (isAsked('--debug')) process.stderr.write(`${linesWithoutControls(stackOf(told))}\n`)
  }
}

/** What the parser says, on one line with where to look; undefined when it was only asked for help. */
function usageError(error: CommanderError, program: Command, args: readonly string[]): CliError | undefined {
  if (error.exitCode === 0) return undefined
  // Help that was shown because a subcommand is missing has said it all.
  if (error.code === 'commander.help') return new CliError('usage', 'say what to do, one of the commands above')
  const message = error.message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (.*)\?\)$/s, (_, guess: string) => `; did you mean ${guess.replaceAll('\n', ' ')}?`)
  return new CliError('usage', `${message} (see ${calledCommand(program, args)} --help)`, { cause: error })
}

/** As far as the words name commands: `sluice actions get`. */
function calledCommand(program: Command, args: readonly string[]): string {
  let command = program
  const path = [program.name()]
  for (const word of args) {
    const next = command.commands.find((each) => each.name() === word)
    if (next === undefined) break
    command = next
    path.push(word)
  }
  return path.join(' ')
}

function stackOf(error: CliError): string {
  return error.cause instanceof Error ? (error.cause.stack ?? '') : (error.stack ?? '')
}
