import { Argument, type Command } from 'commander'
import { newCommand, onCall } from '../command.ts'
import { completionScript, shells } from '../completion-script.ts'

/** What to put where, so that every new shell has it. */
const howTo: Readonly<Record<(typeof shells)[number], string>> = {
  bash: "echo 'source <(sluice completion bash)' >> ~/.bashrc",
  zsh: "echo 'source <(sluice completion zsh)' >> ~/.zshrc",
  fish: 'sluice completion fish > ~/.config/fish/completions/sluice.fish',
  powershell: 'sluice completion powershell >> $PROFILE',
}

export function completionCommand(): Command {
  const command = newCommand('completion', {
    summary: 'a script that lets a shell complete commands, options, and names of queues, tenants and actions',
    details:
      'For every new shell: add "source <(sluice completion bash)" to ~/.bashrc, the same with zsh to ~/.zshrc, or write the file to ' +
      '~/.config/fish/completions. Names come from the server that SLUICE_URL or --url says, if it answers within two seconds.',
    examples: ['sluice completion bash > sluice-completion.bash', 'sluice completion fish > sluice.fish'],
  }).addArgument(new Argument('<shell>', 'the shell').choices([...shells]))
  return onCall(command, async ({ output, args }) => {
    const shell = args[0] as (typeof shells)[number]
    const script = completionScript(shell)
    output.data({ shell, script }, () => script)
    if (process.stdout.isTTY) output.talk(`For every new shell: ${howTo[shell]}`)
    return 'ok'
  })
}
