import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll } from 'vitest'
import { goFirst } from '../../src/testing/go-first.ts'
import { root } from '../docs/markdown.ts'
import { BuiltPackage } from './built-package.ts'

const source = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
// By its place: a child in another folder would not find it by its name.
const loader = import.meta.resolve('tsx')

const running = new Set<CliProcess>()

// A test that fails does not come to where it ends what it has started.
afterAll(async () => {
  for (const cli of running) {
    cli.signal('SIGKILL')
    await cli.ended()
  }
})

export interface CliOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** What comes on standard input; nothing unless given. */
  readonly input?: string
  /** More may come after it, as from a terminal. */
  readonly keepsInputOpen?: boolean
  /** The main file of a built package. @default that of `npm test`, or the source */
  readonly main?: string
  /** Before its neighbours, for what is measured in time; its Redis server inherits it. */
  readonly goesFirst?: boolean
}

export interface CliEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** What is typed before the arguments. @param main - The main file of a built package; unless given that of `npm test`, or the source. */
export function cliCommand(main = BuiltPackage.shared?.main): string[] {
  return [process.execPath, ...(main === undefined ? ['--import', loader, source] : [main])]
}

/** What the shell of the tests has set must not reach into them. */
export function cliEnvironment(env: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(FORCE_COLOR|NO_COLOR|SLUICE_.*)$/.test(name))
  return { ...Object.fromEntries(inherited), ...env }
}

/** The CLI in a process of its own, as a shell would start it. */
export class CliProcess {
  readonly #child: ChildProcessWithoutNullStreams
  readonly #ended: Promise<CliEnd>
  #stdout = ''
  #stderr = ''

  constructor(args: readonly string[], options: CliOptions = {}) {
    const { cwd = root, env = {}, input = '', keepsInputOpen = false, main, goesFirst = false } = options
    const [node = '', ...program] = cliCommand(main)
    this.#child = spawn(node, [...program, ...args], { cwd, env: cliEnvironment(env) })
    if (goesFirst) goFirst(this.#child.pid)
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text
    })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    this.#child.stdin.on('error', () => {})
    this.#child.stdin.write(input)
    if (!keepsInputOpen) this.#child.stdin.end()
    this.#ended = once(this.#child, 'close').then(([code, signal]) => {
      running.delete(this)
      return {
        code: code as number | null,
        signal: signal as NodeJS.Signals | null,
        stdout: this.#stdout,
        stderr: this.#stderr,
      }
    })
    running.add(this)
  }

  get stderr(): string {
    return this.#stderr
  }

  ended(): Promise<CliEnd> {
    return this.#ended
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Closes the pipe of its talk, as `2> >(head -n 1)` does. */
  stopListening(): void {
    this.#child.stderr.destroy()
  }

  /** Waits until it has said something like this; fails when it ends before. */
  said(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#until(pattern, this.#child.stderr, () => this.#stderr)
  }

  /** The same of its data. */
  wrote(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#until(pattern, this.#child.stdout, () => this.#stdout)
  }

  async #until(pattern: RegExp, stream: NodeJS.ReadableStream, text: () => string): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(text())
      if (found) return found
      const more = once(stream, 'data')
      const end = await Promise.race([more.then(() => undefined), this.#ended])
      if (end && !pattern.test(text())) {
        throw new Error(`it ended with ${end.code} and never said ${pattern}: ${text()} ${end.stderr}`)
      }
    }
  }
}

/** Runs one command to its end. */
export function sluice(args: readonly string[], options?: CliOptions): Promise<CliEnd> {
  return new CliProcess(args, options).ended()
}
