import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { cliCommand, cliEnvironment } from './cli-process.ts'
import { VirtualTerminal } from './virtual-terminal.ts'

/** A program in a real terminal of the system, whose screen is a virtual one: `script` makes the terminal. */
export class PtyProcess {
  readonly terminal: VirtualTerminal
  readonly #child: ChildProcessWithoutNullStreams
  readonly #folder = mkdtempSync(join(tmpdir(), 'sluice-pty-'))
  readonly #ended: Promise<number | null>

  constructor(command: readonly string[], options: { cwd: string; env?: Readonly<Record<string, string>> }) {
    const size = { columns: 100, rows: 24 }
    this.terminal = new VirtualTerminal(size)
    // Before the program starts: how large the terminal is, where it is, and whose signals end the program.
    const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
    const before = `stty rows ${size.rows} cols ${size.columns}; tty >'${this.#folder}/tty'; echo $$ >'${this.#folder}/pid'`
    this.#child = spawn('script', ['-qfec', `${before}; exec ${words}`, '/dev/null'], {
      cwd: options.cwd,
      env: cliEnvironment({ TERM: 'xterm-256color', CI: '', ...options.env }),
    })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => this.terminal.write(text))
    this.#child.stdin.on('error', () => {})
    this.#ended = once(this.#child, 'close').then(([code]) => code as number | null)
    onTestFinished(async () => {
      this.#child.kill('SIGKILL')
      await this.#ended
      rmSync(this.#folder, { recursive: true, force: true })
    })
  }

  /** The CLI in it. */
  static sluice(args: readonly string[], options: { cwd: string; env?: Readonly<Record<string, string>> }): PtyProcess {
    return new PtyProcess([...cliCommand(), ...args], options)
  }

  press(keys: string): void {
    this.#child.stdin.write(keys)
  }

  /** Of the program itself, not of the terminal around it. */
  signal(signal: NodeJS.Signals): void {
    process.kill(Number(readFileSync(join(this.#folder, 'pid'), 'utf8')), signal)
  }

  resize({ columns, rows }: { columns: number; rows: number }): void {
    this.terminal.resize({ columns, rows })
    execFileSync('stty', ['-F', this.#tty, 'rows', String(rows), 'cols', String(columns)])
  }

  /** What the terminal is set to: `-icanon -echo` while a program takes single keys. */
  settings(): string {
    return execFileSync('stty', ['-F', this.#tty, '-a'], { encoding: 'utf8' })
  }

  /** The exit code of the program. */
  ended(): Promise<number | null> {
    return this.#ended
  }

  get #tty(): string {
    return readFileSync(join(this.#folder, 'tty'), 'utf8').trim()
  }
}
