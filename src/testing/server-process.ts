import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

// Below the ephemeral range, so that no outgoing connection of the machine takes a port between two starts.
const FIRST_PORT = 20_000
const LAST_PORT = 32_000
const PORT_ATTEMPTS = 100
const START_TIMEOUT_MS = 20_000
/** Lines of the server's log that are kept for the message when it does not start. */
const LOG_LINES = 100

/**
 * Kills the server and removes its folder when the pipe to this process closes, however this process ended.
 * Lines on the pipe name the process to kill.
 */
const WATCHDOG = 'trap "" INT TERM HUP; while read -r line; do pid=$line; done; kill -9 "$pid" 2>/dev/null; rm -rf "$1"'

/** A server program in a temporary folder, ended at the latest with the process that started it. */
export class ServerProcess {
  readonly folder: string
  readonly #watchdog: ChildProcess
  #process: ChildProcess | undefined
  #gone: Promise<void> = Promise.resolve()

  static async make(): Promise<ServerProcess> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
    const stdio = ['pipe', 'ignore', 'ignore'] as const
    const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', folder], { detached: true, stdio: [...stdio] })
    watchdog.unref()
    return new ServerProcess(folder, watchdog)
  }

  private constructor(folder: string, watchdog: ChildProcess) {
    this.folder = folder
    this.#watchdog = watchdog
  }

  get isRunning(): boolean {
    return this.#process !== undefined
  }

  get pid(): number {
    const pid = this.#process?.pid
    if (pid === undefined) throw new Error('redis-server is not running')
    return pid
  }

  /** Resolves when it has logged that it is ready. */
  async start(args: readonly string[], isReady: RegExp): Promise<void> {
    const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#process = child
    this.#gone = new Promise<void>((resolve) => {
      // Closed means that the process has ended and that all it printed has been read.
      child.once('close', () => {
        if (this.#process === child) this.#process = undefined
        resolve()
      })
    })
    if (child.pid !== undefined) this.#watchdog.stdin?.write(`${child.pid}\n`)
    await ready(child, this.#gone, isReady)
  }

  /** Sends a signal, and waits for the end of the process when the signal is SIGKILL or SIGTERM. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    process.kill(this.pid, signal)
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await this.#gone
  }

  /** Ends it and removes the folder. */
  async stop(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL')
    this.#watchdog.stdin?.end()
    await rm(this.folder, { recursive: true, force: true })
  }
}

async function ready(child: ChildProcess, gone: Promise<void>, isReady: RegExp): Promise<void> {
  const log: string[] = []
  let timer: NodeJS.Timeout | undefined
  const end = await Promise.race([
    new Promise<'ready'>((resolve) => {
      for (const input of [child.stdout, child.stderr]) {
        if (input === null) continue
        createInterface({ input }).on('line', (line) => {
          log.push(line)
          if (log.length > LOG_LINES) log.shift()
          if (isReady.test(line)) resolve('ready')
        })
      }
    }),
    new Promise<'did not become ready'>((resolve) => {
      timer = setTimeout(() => resolve('did not become ready'), START_TIMEOUT_MS)
    }),
    new Promise<never>((_, reject) => {
      child.once('error', (cause) => {
        reject(new Error('redis-server cannot be started: is it installed (apt-get install redis-server)?', { cause }))
      })
    }),
    gone.then(() => 'ended at once' as const),
  ]).finally(() => clearTimeout(timer))
  if (end === 'ready') return
  child.kill('SIGKILL')
  throw new Error(`redis-server ${end}:\n${log.join('\n')}`)
}

/** A TCP port of 127.0.0.1 that nothing listens on at the moment. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < PORT_ATTEMPTS; attempt++) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT))
    if (await isFree(port)) return port
  }
  throw new Error(`no free port between ${FIRST_PORT} and ${LAST_PORT}`)
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
