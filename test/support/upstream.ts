import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Busiest } from './arrivals.ts'

/** A call as the upstream saw it; times in milliseconds of the machine's monotonic clock, as in histories. */
export interface Arrival {
  at: number
  /** When it was answered. */
  until: number
  job: string
  tenant: string
  fence: string
}

export interface UpstreamReport {
  total: number
  /** The most arrivals in any sliding window. */
  busiest: Busiest
  busiestByTenant: Record<string, number>
  mostAtOnce: number
  /** Of the limit, between the first arrival and the last. */
  usedShare: number
}

export type UpstreamQuestion =
  | { ask: 'report'; permits: number; windowMs: number }
  | { ask: 'arrivals' }
  | { ask: 'total' }
  | { ask: 'forget' }

/** The upstream recorder's process, as a test sees it. */
export class Upstream {
  readonly port: number
  readonly #process: ChildProcess
  readonly #died: Promise<never>

  private constructor(child: ChildProcess, port: number, death: Promise<never>) {
    this.#process = child
    this.port = port
    this.#died = death
  }

  static async start(): Promise<Upstream> {
    const child = fork(fileURLToPath(new URL('upstream-process.ts', import.meta.url)), {
      execArgv: ['--import', 'tsx'],
    })
    const death = died(child)
    const [address] = (await Promise.race([once(child, 'message'), death])) as [{ port: number }]
    return new Upstream(child, address.port, death)
  }

  /** What arrived so far, held against a limit of `permits` per `windowMs`. */
  async report(limit: { permits: number; windowMs: number }): Promise<UpstreamReport> {
    return this.#ask({ ask: 'report', ...limit })
  }

  /** How many have arrived so far: cheap to ask while it is measured. */
  async total(): Promise<number> {
    return this.#ask({ ask: 'total' })
  }

  async arrivals(): Promise<Arrival[]> {
    return this.#ask({ ask: 'arrivals' })
  }

  /** Starts the record over. */
  async forget(): Promise<void> {
    await this.#ask({ ask: 'forget' })
  }

  async stop(): Promise<void> {
    if (hasEnded(this.#process)) return
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exit
  }

  async #ask<Answer>(question: UpstreamQuestion): Promise<Answer> {
    this.#process.send(question)
    const [answer] = await Promise.race([once(this.#process, 'message'), this.#died])
    return answer as Answer
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** Rejects when the process ends: whoever waits for a word of it need not wait any longer. */
function died(child: ChildProcess): Promise<never> {
  const death = once(child, 'exit').then(() => {
    throw new Error(`the upstream recorder has ended (${child.exitCode ?? child.signalCode})`)
  })
  // When nobody waits, it has been stopped.
  death.catch(() => {})
  return death
}

export interface UpstreamCall {
  job: string
  tenant: string
  fence: string | number | bigint
  /** How long the upstream takes to answer. @default 0 */
  holdMs?: number
}

/** One kept-alive connection to the upstream, for all calls of a process. */
export class UpstreamClient {
  readonly #socket: Socket
  readonly #waiting = new Map<string, () => void>()
  #calls = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    createInterface({ input: socket }).on('line', (call) => {
      this.#waiting.get(call)?.()
      this.#waiting.delete(call)
    })
  }

  static async connect(port: number): Promise<UpstreamClient> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return new UpstreamClient(socket)
  }

  /** Sends at once; resolves with the answer. */
  call({ job, tenant, fence, holdMs = 0 }: UpstreamCall): Promise<void> {
    const call = String(++this.#calls)
    return new Promise((resolve) => {
      this.#waiting.set(call, resolve)
      this.#socket.write(`${call}\t${holdMs}\t${job}\t${tenant}\t${fence}\n`)
    })
  }

  close(): void {
    this.#socket.destroy()
  }
}
