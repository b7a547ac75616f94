import { Redis as Client } from 'ioredis'
import { definedOnly } from '../defined-only.ts'
import { StoreUnavailableError } from '../errors.ts'
import { answersOf } from './best-answer.ts'
import { Connection, type RedisAddress } from './connection.ts'
import { NewestKnown } from './newest-known.ts'
import { reconnectDelayMs } from './reconnect-delay.ts'
import type { SentinelTarget } from './redis-target.ts'
import { type MoveListener, nameOf, type Place, type Whereabouts } from './whereabouts.ts'

/** What one sentinel says. A later epoch has seen a later failover. */
interface Answer {
  readonly host: string
  readonly port: number
  readonly epoch: number
}

/**
 * Where sentinels tell of another master, and how to read what they say. The one that leads a failover tells of the promotion
 * up to a second before any of them tells of the switch: a master that hung goes on meanwhile, takes writes and loses them.
 */
const NEWS: Readonly<Record<string, (words: readonly string[]) => { name?: string; host?: string; port?: string }>> = {
  '+promoted-slave': ([, , host, port, , name]) => definedOnly({ name, host, port }),
  '+switch-master': ([name, , , host, port]) => definedOnly({ name, host, port }),
}

/**
 * The sentinels of one master: who it is now, and the news when it is another one. All of them are asked and all are
 * listened to: a sentinel often dies, or hangs, together with the master it stands beside.
 */
export class Sentinels {
  readonly #target: SentinelTarget
  readonly #commandTimeoutMs: number
  readonly #connectionName: string
  readonly #listeners = new Set<MoveListener>()
  readonly #newest = new NewestKnown<Answer>({ areAgreed: nameOneMaster })
  #subscribers: Client[] | undefined
  #isClosed = false

  constructor(target: SentinelTarget, options: { commandTimeoutMs: number; connectionName: string }) {
    this.#target = target
    this.#commandTimeoutMs = options.commandTimeoutMs
    this.#connectionName = options.connectionName
  }

  /** Of the master, for one connection. */
  whereabouts(): Whereabouts {
    const listeners = new Set<() => void>()
    return {
      find: async (signal) => this.#find(signal),
      lost: () => this.#newest.lost(),
      reached: () => this.#newest.reached(),
      onMove: (listener) => {
        this.#listeners.add(listener)
        const off = () => {
          this.#listeners.delete(listener)
          listeners.delete(off)
        }
        listeners.add(off)
        return off
      },
      close: () => {
        for (const off of [...listeners]) off()
      },
    }
  }

  close(): void {
    this.#isClosed = true
    for (const subscriber of this.#subscribers ?? []) subscriber.disconnect()
  }

  async #find(signal: AbortSignal): Promise<Place> {
    this.#listen()
    return { address: this.#addressOf(await this.#ask(signal)) }
  }

  /**
   * Of all that answer, because right after a failover only the sentinel that led it knows the new master: the others
   * still name one that takes writes and loses them.
   */
  async #ask(signal?: AbortSignal): Promise<Answer> {
    const { sentinels } = this.#target
    const answers = await answersOf(
      sentinels.map((address) => this.#askOne({ ...address, ...this.#credentials() }, signal)),
      { enough: sentinels.length },
    )
    return this.#newest.believe(answers, answers.length === sentinels.length)
  }

  async #askOne(address: RedisAddress, signal?: AbortSignal): Promise<Answer> {
    const connection = await Connection.open({
      address,
      connectionName: this.#connectionName,
      commandTimeoutMs: this.#commandTimeoutMs,
      ...(signal && { signal }),
    })
    try {
      // The one that leads a failover names the new master here long before it shows it among its fields.
      const [address, fields] = await Promise.all([
        connection.send('SENTINEL', ['GET-MASTER-ADDR-BY-NAME', this.#target.name]),
        connection.send('SENTINEL', ['MASTER', this.#target.name]),
      ])
      return this.#read(address as string[] | null, fields as string[])
    } catch (error) {
      if (error instanceof StoreUnavailableError) throw error
      throw unavailable(`the sentinel at ${nameOf(address)} says: ${(error as Error).message}`, error)
    } finally {
      void connection.close()
    }
  }

  #read(address: readonly string[] | null, fields: readonly string[]): Answer {
    const [host, port] = address ?? []
    if (!host || !(Number(port) > 0)) throw unavailable(`the sentinels do not say where ${this.#target.name} is`)
    const epoch = fields[fields.indexOf('config-epoch') + 1]
    return { host, port: Number(port), epoch: Number(epoch) }
  }

  #addressOf({ host, port }: { host: string; port: number }): RedisAddress {
    const { username, password, db, tls, natMap } = this.#target
    return { ...(natMap?.[`${host}:${port}`] ?? { host, port }), username, password, db, tls }
  }

  #credentials(): Omit<RedisAddress, 'host' | 'port' | 'path' | 'db'> {
    const { sentinelUsername: username, sentinelPassword: password, sentinelTls: tls } = this.#target
    return { username, password, tls }
  }

  /** From the first question on, for as long as this is open. */
  #listen(): void {
    if (this.#isClosed) return
    this.#subscribers ??= this.#target.sentinels.map((address) => this.#subscribe(address))
  }

  /** ioredis reconnects by itself here: nothing is ever asked on this connection that could run twice. */
  #subscribe(address: RedisAddress): Client {
    const { tls, username, password } = this.#credentials()
    const { host = 'localhost', port = 26_379 } = address
    const subscriber = new Client({
      host,
      port,
      ...definedOnly({ username, password }),
      ...(tls ? { tls: tls === true ? {} : tls } : {}),
      connectionName: this.#connectionName,
      protocol: 2,
      disableClientInfo: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResubscribe: false,
      maxRetriesPerRequest: 0,
      connectTimeout: this.#commandTimeoutMs,
      retryStrategy: (attempt: number) => reconnectDelayMs(attempt),
    })
    subscriber.on('error', () => {})
    let isBack = false
    subscriber.on('ready', () => {
      // One by one: a user may be allowed to hear one of them only.
      for (const channel of Object.keys(NEWS)) subscriber.subscribe(channel).catch(() => {})
      // The master may have changed while nobody listened here.
      if (isBack) this.#askAgain()
      isBack = true
    })
    subscriber.on('message', (channel: string, text: string) => {
      const { name, host, port } = NEWS[channel]?.(text.split(' ')) ?? {}
      if (name === this.#target.name && host && port) this.#tell({ host, port: Number(port) })
    })
    return subscriber
  }

  #askAgain(): void {
    this.#ask().then(
      (answer) => this.#tell(answer),
      () => {},
    )
  }

  #tell(place: { host: string; port: number }): void {
    if (this.#isClosed) return
    for (const listener of [...this.#listeners]) listener(this.#addressOf(place), 'replaced')
  }
}

function nameOneMaster(answers: readonly Answer[]): boolean {
  return answers.every(({ host, port }) => host === answers[0]?.host && port === answers[0]?.port)
}

function unavailable(reason: string, cause?: unknown): StoreUnavailableError {
  return new StoreUnavailableError({ reason, outcome: 'not-sent', cause })
}
