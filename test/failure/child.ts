import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A program of this folder in a process of its own, started with settings and heard through messages. */
export class Child<Message> {
  readonly process: ChildProcess
  readonly #heard: Message[] = []
  readonly #listeners = new Set<() => void>()
  #output = ''

  constructor(program: string, settings: object) {
    this.process = fork(fileURLToPath(new URL(program, import.meta.url)), [JSON.stringify(settings)], {
      execArgv: ['--import', 'tsx'],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream?.on('data', (text) => {
        this.#output = (this.#output + text).slice(-4_000)
      })
    }
    this.process.on('message', (message) => {
      this.#heard.push(message as Message)
      this.#notify()
    })
    this.process.on('exit', () => this.#notify())
  }

  get messages(): readonly Message[] {
    return this.#heard
  }

  get hasEnded(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null
  }

  /** Waits until what was heard so far satisfies `isEnough`, and gives it; fails when the process ends before. */
  async heard(isEnough: (messages: readonly Message[]) => boolean, timeoutMs = 30_000): Promise<readonly Message[]> {
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        this.#listeners.delete(look)
      }
      const look = () => {
        if (isEnough(this.#heard)) {
          done()
          resolve(this.#heard)
        } else if (this.hasEnded) {
          done()
          reject(new Error(`the process ended before: ${this.#output}`))
        }
      }
      const timer = setTimeout(() => {
        done()
        reject(new Error(`nothing of the sort heard within ${timeoutMs} ms: ${this.#output}`))
      }, timeoutMs)
      this.#listeners.add(look)
      look()
    })
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.hasEnded) return
    const exit = once(this.process, 'exit')
    this.process.kill(signal)
    await exit
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}
