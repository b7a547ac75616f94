import type { Redis as Client } from 'ioredis'
import * as built from '../../../src/store/scripts.generated.ts'
import type { TestRedis } from '../../../src/testing/redis-server.ts'

interface ScriptCall {
  /** As Redis knows it. */
  readonly script: string
  /** The keys it was called with. */
  readonly declared: readonly string[]
  /** What it did, in order. */
  readonly commands: { readonly name: string; readonly isWrite: boolean; readonly keys: readonly string[] }[]
}

/** Sees every command that scripts run on a server, through MONITOR. */
export class ScriptMonitor {
  readonly #monitor: Client
  readonly #writes: ReadonlySet<string>
  #calls: ScriptCall[] = []
  #current: ScriptCall | undefined
  #marks = 0

  static async start(server: TestRedis): Promise<ScriptMonitor> {
    const client = server.client()
    const commands = (await client.call('COMMAND')) as [string, number, string[]][]
    const writes = commands.filter(([, , flags]) => flags.includes('write')).map(([name]) => name)
    const monitor = await client.monitor()
    client.disconnect()
    return new ScriptMonitor(monitor, new Set(writes))
  }

  private constructor(monitor: Client, writes: ReadonlySet<string>) {
    this.#monitor = monitor
    this.#writes = writes
    monitor.on('monitor', (_time: string, args: string[], source: string) => this.#see(args, source))
  }

  stop(): void {
    this.#monitor.disconnect()
  }

  /**
   * Keys that a script chose itself and met only after its first write, since the last question; waits until everything
   * that `client` has sent was seen.
   */
  async keysMetTooLate(client: Client): Promise<string[]> {
    const calls = await this.#callsSoFar(client)
    return [...new Set(calls.flatMap(metTooLate))]
  }

  async #callsSoFar(client: Client): Promise<ScriptCall[]> {
    const mark = `mark ${++this.#marks}`
    const seen = new Promise<void>((resolve) => {
      const look = (_time: string, args: string[]) => {
        if (args[1] !== mark) return
        this.#monitor.off('monitor', look)
        resolve()
      }
      this.#monitor.on('monitor', look)
    })
    await client.echo(mark)
    await seen
    const calls = this.#calls
    this.#calls = []
    this.#current = undefined
    return calls
  }

  #see(args: string[], source: string): void {
    const name = (args[0] ?? '').toLowerCase()
    if (source !== 'lua') {
      this.#current = undefined
      if (name !== 'fcall') return
      const declared = args.slice(3, 3 + Number(args[2]))
      this.#current = { script: args[1] as string, declared, commands: [] }
      this.#calls.push(this.#current)
      return
    }
    // Every key has a hash tag; no value does.
    const keys = args.slice(1).filter((arg) => /^[^:]+:\{[^}]+\}:/.test(arg))
    this.#current?.commands.push({ name, isWrite: this.#writes.has(name), keys })
  }
}

const { library: _, ...scripts } = built

function nameOf(calledAs: string): string {
  return Object.values(scripts).find((script) => script.calledAs === calledAs)?.name ?? calledAs
}

function metTooLate({ script, declared, commands }: ScriptCall): string[] {
  const met = new Set(declared)
  const late: string[] = []
  let hasWritten = false
  for (const { name, isWrite, keys } of commands) {
    for (const key of keys) {
      if (hasWritten && !met.has(key)) late.push(`${nameOf(script)}: ${name} ${key}`)
      met.add(key)
    }
    hasWritten ||= isWrite
  }
  return late
}
