import { RootCommand } from '@bomb.sh/tab'

export const shells = ['bash', 'zsh', 'fish', 'powershell'] as const

/** What a shell reads at its start; it asks `sluice complete -- <words>` then. */
export function completionScript(shell: (typeof shells)[number]): string {
  const script = captured(() => new RootCommand().setup('sluice', 'sluice', shell))
  return shell === 'bash' ? forPlainBash(script) : script
}

/** For a bash without the package bash-completion, and with names of files where a file is wanted. */
function forPlainBash(script: string): string {
  const words = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} words=("\${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
fi
`
  return words + script.replace('complete -F', 'complete -o default -F')
}

/** The library writes to the console, and only there. */
export function captured(write: () => void): string {
  const { log } = console
  let text = ''
  console.log = (line: string) => {
    text += `${line}\n`
  }
  try {
    write()
  } finally {
    console.log = log
  }
  return text
}
