import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { actionsCommand } from './commands/actions.ts'
import { deadCommand } from './commands/dead.ts'
import { demoCommand } from './commands/demo.ts'
import { keysCommand } from './commands/keys.ts'
import { limitsCommand } from './commands/limits.ts'
import { runCommand } from './commands/run.ts'
import { serveCommand } from './commands/serve.ts'
import { submitCommand } from './commands/submit.ts'
import { tenantsCommand } from './commands/tenants.ts'
import { workerCommand } from './commands/worker.ts'

/** The whole command line: what it can do, before anything is done. */
export function createProgram(): Command {
  const program = new Command('sluice')
    .description('Push millions of calls through a rate-limited API: fairly, on budget, and without losing one.')
    .version(packageVersion())
    .addHelpText('after', '\nExample:\n  $ sluice demo\n\nEvery command has --help with an example, and --json.')
  const commands = [
    demoCommand(),
    runCommand(),
    serveCommand(),
    workerCommand(),
    submitCommand(),
    actionsCommand(),
    tenantsCommand(),
    limitsCommand(),
    deadCommand(),
    keysCommand(),
  ]
  for (const command of commands) program.addCommand(command)
  program.commands.forEach(inherit)
  return inherit(program)
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
