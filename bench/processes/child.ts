import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A TypeScript file of this folder in a process of its own, and messages of known shapes to and from it. */
export class Child<To, From extends { kind: string }> {
  readonly #process: ChildProcess
  readonly #gone: Promise<never>

  constructor(file: string, args: readonly string[] = []) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: ['--import', 'tsx'] })
    this.#gone = new Promise((_, reject) => {
      this.#process.once('exit', (code, signal) => reject(new Error(`${file} ended: ${signal ?? code}`)))
    })
    this.#gone.catch(() => {})
  }

  send(message: To): void {
    this.#process.send(message as object)
  }

  /** The next message that fits. Ask before what causes it. Rejects when the process ends first. */
  next<Kind extends From['kind']>(
    kind: Kind,
    fits: (message: Extract<From, { kind: Kind }>) => boolean = () => true,
  ): Promise<Extract<From, { kind: Kind }>> {
    const message = new Promise<Extract<From, { kind: Kind }>>((resolve) => {
      const listen = (received: unknown): void => {
        const candidate = received as Extract<From, { kind: Kind }>
        if (candidate.kind !== kind || !fits(candidate)) return
        this.#process.off('message', listen)
        resolve(candidate)
      }
      this.#process.on('message', listen)
    })
    return Promise.race([message, this.#gone])
  }

  async kill(): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.#gone.catch(() => {})
  }
}

/** The child's end: what the bench sends, and how to answer. */
export function parentPort<To, From>(): { onMessage(listen: (message: To) => void): void; send(message: From): void } {
  return {
    onMessage: (listen) => process.on('message', (message) => listen(message as To)),
    send: (message) => process.send?.(message),
  }
}

/** One clock for all processes of the machine. */
export function monotonicMs(): number {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1_000 + nanos / 1_000_000
}
