import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../../src/testing/redis-server.ts'
import { until } from '../support/until.ts'

/** How long a busy machine may take to start an application of NestJS. */
const START_MS = 60_000

/** The example, running. */
export class ExampleProcess {
  readonly #child: ChildProcess
  readonly url: string
  #output = ''

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (this.#output += text))
  }

  /** Resolves when it says that it has started. */
  static async start(folder: string, env: Record<string, string>, entry = 'main.js'): Promise<ExampleProcess> {
    const port = await freePort()
    const child = spawn(process.execPath, [join(folder, 'dist', entry)], {
      cwd: folder,
      env: { ...process.env, ...env, PORT: String(port), NO_COLOR: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const started = new ExampleProcess(child, `http://127.0.0.1:${port}`)
    await started.said(/dependencies initialized/)
    // NestJS does not say when it listens.
    if (entry === 'main.js')
      await until(async () => (await started.get('/health')) !== undefined, { what: 'it listens' })
    return started
  }

  said(pattern: RegExp): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (!pattern.test(this.#output)) return
        clearTimeout(timer)
        resolve()
      }
      const fail = (what: string) =>
        reject(new Error(`${what} before it said ${pattern}: ${this.#output.slice(-2_000)}`))
      const timer = setTimeout(() => fail('time was over'), START_MS)
      this.#child.once('exit', () => fail('it ended'))
      this.#child.stdout?.on('data', look)
      look()
    })
  }

  async post<Answer>(path: string, body: unknown): Promise<Answer> {
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(this.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!reply.ok) throw new Error(`${path} answered ${reply.status}: ${await reply.text()}`)
    return (await reply.json()) as Answer
  }

  async get<Answer>(path: string): Promise<Answer> {
    return (await (await fetch(this.url + path)).json()) as Answer
  }

  /** Sends the signal, and answers which one it ended by. */
  async end(signal: NodeJS.Signals): Promise<NodeJS.Signals | null> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.#child.signalCode
    const exit = once(this.#child, 'exit')
    this.#child.kill(signal)
    await exit
    return this.#child.signalCode
  }
}
