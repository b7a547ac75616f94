import { readFileSync } from 'node:fs'
import { Command } from 'commander'

/**
 * Every command, in the order of the help. Each is loaded by itself: whoever calls one does not wait for the others, of which
 * some bring an HTTP client along.
 */
const loaders = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand(),
  run: async () => (await import('./commands/run.ts')).runCommand(),
  simulate: async () => (await import('./commands/simulate.ts')).simulateCommand(),
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  worker: async () => (await import('./commands/worker.ts')).workerCommand(),
  submit: async () => (await import('./commands/submit.ts')).submitCommand(),
  actions: async () => (await import('./commands/actions.ts')).actionsCommand(),
  jobs: async () => (await import('./commands/jobs.ts')).jobsCommand(),
  queues: async () => (await import('./commands/queues.ts')).queuesCommand(),
  tenants: async () => (await import('./commands/tenants.ts')).tenantsCommand(),
  top: async () => (await import('./commands/top.ts')).topCommand(),
  events: async () => (await import('./commands/events.ts')).eventsCommand(),
  limits: async () => (await import('./commands/limits.ts')).limitsCommand(),
  schedules: async () => (await import('./commands/schedules.ts')).schedulesCommand(),
  dead: async () => (await import('./commands/dead.ts')).deadCommand(),
  keys: async () => (await import('./commands/keys.ts')).keysCommand(),
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(),
} as const satisfies Record<string, () => Promise<Command>>

type CommandName = keyof typeof loaders

/**
 * The command line: what it can do, before anything is done.
 * @param args - What it will be asked; with only what that needs of it. Without them it is whole.
 */
export async function createProgram(args: readonly string[] = []): Promise<Command> {
  const program = new Command('sluice')
    .description('Push millions of calls through a rate-limited API: fairly, on budget, and without losing one.')
    .version(packageVersion())
    .addHelpText('after', '\nExample:\n  $ sluice demo\n\nEvery command has --help with an example, and --json.')
  const commands = await Promise.all(neededFor(args).map((name) => loaders[name]()))
  for (const command of commands) program.addCommand(command)
  program.commands.forEach(inherit)
  return inherit(program)
}

/** The command that is called. What is no command may be a mistyped one, or help that lists them all. */
function neededFor([first = '']: readonly string[]): readonly CommandName[] {
  const names = Object.keys(loaders) as CommandName[]
  const called = names.find((name) => name === first)
  if (called !== undefined) return [called]
  return first === '--version' || first === '-V' ? [] : names
}

/** Errors are thrown, not printed: one place says them. */
function inherit(command: Command): Command {
  command.exitOverride().configureOutput({ outputError: () => {} })
  command.commands.forEach(inherit)
  return command
}

function packageVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  return manifest.version
}
