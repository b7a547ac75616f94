import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'

/** What `serve`, `worker` and every other command that runs on says once it is ready. */
const RUNS_ON = /Ctrl-C ends it/g
/** `sluice serve … &   # with a remark` */
const IN_BACKGROUND = /^sluice .*&\s*(#.*)?$/gm

export interface Ran {
  /** Undefined while it runs on. */
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
}

/** A terminal in a folder: runs what documents tell a reader to type, with `sluice` on its path. */
export class Shell {
  readonly folder: string
  readonly #env: NodeJS.ProcessEnv
  readonly #pieces = new Set<Piece>()

  /** @param sluice - What `sluice` starts: the program and its first arguments. */
  constructor(folder: string, { sluice, env = {} }: { sluice: readonly string[]; env?: NodeJS.ProcessEnv }) {
    this.folder = folder
    const programs = join(folder, 'bin')
    mkdirSync(programs)
    writeFileSync(join(programs, 'sluice'), `#!/bin/sh\nexec ${sluice.map((word) => `'${word}'`).join(' ')} "$@"\n`)
    chmodSync(join(programs, 'sluice'), 0o755)
    const inherited = Object.entries(process.env).filter(([name]) => !/^(FORCE_COLOR|NO_COLOR|SLUICE_.*)$/.test(name))
    this.#env = { ...Object.fromEntries(inherited), PATH: `${programs}${delimiter}${process.env.PATH}`, ...env }
  }

  /** Waits until it has ended, or runs on and says so; what it left in the background has said so too then. */
  async run(text: string): Promise<Ran> {
    const piece = new Piece(text, { cwd: this.folder, env: this.#env })
    this.#pieces.add(piece)
    return piece.ranOrRunsOn()
  }

  /** Ctrl-C in what was run last. */
  interrupt(): Promise<Ran> {
    const last = [...this.#pieces].at(-1)
    if (last === undefined) throw new Error('nothing has been run')
    return last.end('SIGINT')
  }

  /** Ends what still runs. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#pieces, (piece) => piece.end('SIGTERM')))
  }
}

/** One block, in a group of processes of its own. */
class Piece {
  readonly #child: ChildProcessByStdio<null, Readable, Readable>
  readonly #closed: Promise<unknown>
  readonly #background: number
  #code: number | undefined
  #stdout = ''
  #stderr = ''

  constructor(text: string, options: { cwd: string; env: NodeJS.ProcessEnv }) {
    this.#background = text.match(IN_BACKGROUND)?.length ?? 0
    const args = ['-euo', 'pipefail', '-c', text]
    this.#child = spawn('bash', args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout.setEncoding('utf8').on('data', (data: string) => {
      this.#stdout += data
    })
    this.#child.stderr.setEncoding('utf8').on('data', (data: string) => {
      this.#stderr += data
    })
    this.#child.on('exit', (code) => {
      this.#code = code ?? 1
    })
    this.#closed = once(this.#child, 'close')
  }

  async ranOrRunsOn(): Promise<Ran> {
    const runsOn = new Promise<void>((resolve) => {
      const look = () => {
        if (this.#runsOn()) resolve()
      }
      this.#child.stdout.on('data', look)
      this.#child.stderr.on('data', look)
      this.#child.on('exit', look)
    })
    await Promise.race([runsOn, this.#closed])
    return this.#ran()
  }

  /** The last line of it, or all that it left in the background. */
  #runsOn(): boolean {
    const ready = `${this.#stdout}\n${this.#stderr}`.match(RUNS_ON)?.length ?? 0
    return ready > this.#background || (ready > 0 && ready === this.#background && this.#code !== undefined)
  }

  async end(signal: NodeJS.Signals): Promise<Ran> {
    const { pid } = this.#child
    try {
      // The whole group, as a terminal does it.
      if (pid !== undefined) process.kill(-pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
    await this.#closed
    return this.#ran()
  }

  #ran(): Ran {
    return { code: this.#code, stdout: this.#stdout, stderr: this.#stderr }
  }
}
