import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { checkOptions, integer, optional } from '../assert.ts'
import { ledgerRules, type UpstreamCall } from './upstream-ledger.ts'

export type { UpstreamCall } from './upstream-ledger.ts'

export interface UpstreamOptions {
  /** Calls that it takes in any sliding window. */
  limit: number
  /** @default 1_000 */
  windowMs?: number
  /** How long it takes to answer. @default 0 */
  latencyMs?: number
  /** On 127.0.0.1. @default a free one */
  port?: number
}

const upstreamRules = { ...ledgerRules, port: optional(integer({ min: 0, max: 65_535 })) }

/** What arrived so far. */
export interface UpstreamReport {
  readonly calls: number
  /** Calls that were one too many in some sliding window; each was answered with 429. */
  readonly violations: number
  /** The most calls in any sliding window. */
  readonly busiest: number
  readonly limit: number
  readonly windowMs: number
}

/**
 * A rate-limited HTTP API on this machine, in a process of its own: it answers 200, or 429 to a call that is one too
 * many, and keeps the books. `GET /-/report` and `GET /-/calls` show them, and are not counted.
 */
export interface Upstream {
  readonly url: string
  report(): Promise<UpstreamReport>
  /** Every call, in the order of arrival. */
  calls(): Promise<UpstreamCall[]>
  /** Starts the books over. */
  forget(): Promise<void>
  stop(): Promise<void>
}

export async function startUpstream(options: UpstreamOptions): Promise<Upstream> {
  const { limit, windowMs, latencyMs, port = 0 } = checkOptions('startUpstream', options, upstreamRules)
  const isSource = import.meta.url.endsWith('.ts')
  const program = new URL(isSource ? 'upstream-process.ts' : 'upstream-process.js', import.meta.url)
  const child = fork(fileURLToPath(program), [limit, windowMs, latencyMs, port].map(String), {
    // By its place: it is not found by name from the folder of whoever runs this.
    execArgv: isSource ? ['--import', import.meta.resolve('tsx')] : [],
  })
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => [{ error: 'it ended at once' }]),
  ])) as [{ port: number } | { error: string; code?: string }]
  if ('error' in message) {
    child.kill('SIGKILL')
    throw Object.assign(new Error(`The upstream did not start: ${message.error}`), { code: message.code })
  }
  return new UpstreamProcess(child, `http://127.0.0.1:${message.port}`)
}

class UpstreamProcess implements Upstream {
  readonly url: string
  readonly #process: ChildProcess

  constructor(child: ChildProcess, url: string) {
    this.#process = child
    this.url = url
  }

  report(): Promise<UpstreamReport> {
    return this.#get('report')
  }

  calls(): Promise<UpstreamCall[]> {
    return this.#get('calls')
  }

  async forget(): Promise<void> {
    await this.#get('forget')
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await exit
  }

  async #get<Answer>(path: string): Promise<Answer> {
    const reply = await fetch(`${this.url}/-/${path}`)
    return (await reply.json()) as Answer
  }
}
