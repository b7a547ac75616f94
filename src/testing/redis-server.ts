import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'

export interface StartRedisOptions {
  /**
   * One node that owns all slots of a cluster: it serves everything, and refuses a `#!lua` script that touches
   * keys of two slots.
   * @default false
   */
  cluster?: boolean
  /** Keeps data over `restart()`. How safe is a matter of `config: { appendfsync }`. @default false */
  appendonly?: boolean
  /** The TCP port on 127.0.0.1. @default a free one */
  port?: number
  /** Any other directive of redis.conf, by name. */
  config?: Record<string, string | number>
}

/** A real redis-server in a temporary folder that lives no longer than the process that started it. */
export interface TestRedis {
  readonly url: string
  readonly port: number
  /** The unix socket beside the TCP port. */
  readonly path: string
  /** Of the present process; changes with `restart()`. */
  readonly pid: number
  /** Sends a signal, and waits for the end of the process when the signal is SIGKILL or SIGTERM. @default SIGKILL */
  kill(signal?: NodeJS.Signals): Promise<void>
  /** Starts again on the same data and address; kills −9 first when it still runs. */
  restart(): Promise<void>
  /** Ends the server and every client it gave out, and removes the folder. */
  stop(): Promise<void>
  /** A connected client; `stop()` closes it. */
  client(): Redis
}

// Below the ephemeral range, so that no outgoing connection of the machine takes a port between two starts.
const FIRST_PORT = 20_000
const LAST_PORT = 32_000
const START_ATTEMPTS = 20
const START_TIMEOUT_MS = 20_000
/** Lines of the server's log that are kept for the message when it does not start. */
const LOG_LINES = 100

/**
 * Kills the server and removes its folder when the pipe to this process closes, however this process ended.
 * Lines on the pipe name the process to kill.
 */
const WATCHDOG = 'trap "" INT TERM HUP; while read -r line; do pid=$line; done; kill -9 "$pid" 2>/dev/null; rm -rf "$1"'

export async function startRedis(options: StartRedisOptions = {}): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'))
  const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  watchdog.unref()
  const server = new RedisServer(folder, watchdog, options)
  try {
    await server.startOnFreePort()
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

class RedisServer implements TestRedis {
  readonly #folder: string
  readonly #watchdog: ChildProcess
  readonly #options: StartRedisOptions
  readonly #clients: Redis[] = []
  #port = 0
  #busPort = 0
  #process: ChildProcess | undefined
  #gone: Promise<void> = Promise.resolve()

  constructor(folder: string, watchdog: ChildProcess, options: StartRedisOptions) {
    this.#folder = folder
    this.#watchdog = watchdog
    this.#options = options
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  get port(): number {
    return this.#port
  }

  get path(): string {
    return join(this.#folder, 'redis.sock')
  }

  get pid(): number {
    const pid = this.#process?.pid
    if (pid === undefined) throw new Error('redis-server is not running')
    return pid
  }

  /** Two test files may choose the same free port at once: the one that loses tries another. */
  async startOnFreePort(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      this.#port = this.#options.port ?? (await freePort())
      if (this.#options.cluster) this.#busPort = await freePort()
      try {
        await this.#start()
        break
      } catch (error) {
        const taken = error instanceof Error && /address already in use|failed listening/i.test(error.message)
        if (!taken || this.#options.port !== undefined || attempt === START_ATTEMPTS) throw error
      }
    }
    if (this.#options.cluster) await this.#ownAllSlots()
  }

  async restart(): Promise<void> {
    if (this.#process !== undefined) await this.kill('SIGKILL')
    await this.#start()
    if (this.#options.cluster) await this.#waitForCluster()
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    process.kill(this.pid, signal)
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await this.#gone
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.disconnect()
    if (this.#process !== undefined) await this.kill('SIGKILL')
    this.#watchdog.stdin?.end()
    await rm(this.#folder, { recursive: true, force: true })
  }

  client(): Redis {
    const client = new Redis(this.path)
    // A server that a test kills must not end the test by an unhandled event; commands still reject.
    client.on('error', () => {})
    this.#clients.push(client)
    return client
  }

  async #start(): Promise<void> {
    const child = spawn('redis-server', this.#arguments(), { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#process = child
    this.#gone = new Promise<void>((resolve) => {
      // Closed means that the process has ended and that all it printed has been read.
      child.once('close', () => {
        if (this.#process === child) this.#process = undefined
        resolve()
      })
    })
    if (child.pid !== undefined) this.#watchdog.stdin?.write(`${child.pid}\n`)
    await ready(child, this.#gone)
  }

  #arguments(): string[] {
    const directives: Record<string, string | number> = {
      dir: this.#folder,
      bind: '127.0.0.1',
      port: this.#port,
      unixsocket: this.path,
      save: '',
      appendonly: this.#options.appendonly ? 'yes' : 'no',
      ...(this.#options.cluster ? { 'cluster-enabled': 'yes', 'cluster-port': this.#busPort } : {}),
      ...this.#options.config,
    }
    return Object.entries(directives).flatMap(([name, value]) => [`--${name}`, String(value)])
  }

  async #ownAllSlots(): Promise<void> {
    const client = this.client()
    await client.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383)
    client.disconnect()
    await this.#waitForCluster()
  }

  /** A master waits 2 s after its start before it takes writes, and nothing announces it: hence the questions. */
  async #waitForCluster(): Promise<void> {
    const client = this.client()
    const deadline = performance.now() + START_TIMEOUT_MS
    while (!String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) {
      if (performance.now() > deadline) throw new Error('the one-node cluster did not become ready')
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    client.disconnect()
  }
}

/** Waits for the line that redis-server logs once its data is loaded and its sockets listen. */
async function ready(child: ChildProcess, gone: Promise<void>): Promise<void> {
  const log: string[] = []
  let timer: NodeJS.Timeout | undefined
  const end = await Promise.race([
    new Promise<'ready'>((resolve) => {
      for (const input of [child.stdout, child.stderr]) {
        if (input === null) continue
        createInterface({ input }).on('line', (line) => {
          log.push(line)
          if (log.length > LOG_LINES) log.shift()
          if (/ready to accept connections/i.test(line)) resolve('ready')
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
  for (let attempt = 0; attempt < START_ATTEMPTS * 5; attempt++) {
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
