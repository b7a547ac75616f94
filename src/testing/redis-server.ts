import { join } from 'node:path'
import { Redis } from 'ioredis'
import { freePort, ServerProcess } from './server-process.ts'

export { freePort } from './server-process.ts'

export interface StartRedisOptions {
  /**
   * True: one node that owns all slots of a cluster: it serves everything, and refuses a `#!lua` script that touches
   * keys of two slots. `'node'`: a node that owns none yet, for a cluster that somebody else puts together.
   * @default false
   */
  cluster?: boolean | 'node'
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
  /** Where other nodes of a cluster reach it; 0 outside of one. */
  readonly busPort: number
  readonly isRunning: boolean
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

const START_ATTEMPTS = 20
const START_TIMEOUT_MS = 20_000
/** Logged once the data is loaded and the sockets listen. */
const IS_READY = /ready to accept connections/i

export async function startRedis(options: StartRedisOptions = {}): Promise<TestRedis> {
  const server = new RedisServer(await ServerProcess.make(), options)
  try {
    await server.startOnFreePort()
  } catch (error) {
    await server.stop()
    throw error
  }
  return server
}

class RedisServer implements TestRedis {
  readonly #process: ServerProcess
  readonly #options: StartRedisOptions
  readonly #clients: Redis[] = []
  #port = 0
  #busPort = 0

  constructor(process: ServerProcess, options: StartRedisOptions) {
    this.#process = process
    this.#options = options
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  get port(): number {
    return this.#port
  }

  get busPort(): number {
    return this.#busPort
  }

  get path(): string {
    return join(this.#process.folder, 'redis.sock')
  }

  get pid(): number {
    return this.#process.pid
  }

  get isRunning(): boolean {
    return this.#process.isRunning
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
    if (this.#options.cluster === true) await this.#ownAllSlots()
  }

  async restart(): Promise<void> {
    if (this.isRunning) await this.kill('SIGKILL')
    await this.#start()
    if (this.#options.cluster === true) await this.#waitForCluster()
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    return this.#process.kill(signal)
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.splice(0)) client.disconnect()
    await this.#process.stop()
  }

  client(): Redis {
    const client = new Redis(this.path)
    // A server that a test kills must not end the test by an unhandled event; commands still reject.
    client.on('error', () => {})
    this.#clients.push(client)
    return client
  }

  #start(): Promise<void> {
    return this.#process.start(this.#arguments(), IS_READY)
  }

  #arguments(): string[] {
    const directives: Record<string, string | number> = {
      dir: this.#process.folder,
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
