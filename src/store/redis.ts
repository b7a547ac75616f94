import { checkOptions } from '../assert.ts'
import { type Clock, systemClock } from '../clock.ts'
import { ClosedError, EmbeddedRedisMissingError, StoreUnavailableError, UnsupportedRedisError } from '../errors.ts'
import type { RedisArgument } from './command.ts'
import { Connection, type RedisAddress } from './connection.ts'
import { ensureEmbeddedServer } from './embedded.ts'
import { type RedisOptions, type RedisSettings, redisRules } from './redis-options.ts'
import { ScriptTimes } from './script-times.ts'
import { checkServer } from './server-info.ts'

export type { RedisArgument } from './command.ts'
export type { RedisAddress } from './connection.ts'
export { type RedisOptions, redisRules } from './redis-options.ts'

/**
 * The little of a Redis client that the rest needs. Calls made without a connection wait for one, for as long as a
 * command may take; every promise settles.
 */
export interface Redis {
  /** Identity of the server behind the connection: another one after a restart or failover. Empty before the first. */
  readonly serverId: string
  /** Kept by whoever runs scripts over it. */
  readonly scriptTimes?: ScriptTimes
  /**
   * Sends one command. Rejects with StoreUnavailableError when it could not be sent, was not answered in time or the
   * connection was lost (its `outcome` says whether it may have run), with StoreOutOfMemoryError when Redis is full,
   * and with any other error of the server as it is. Nothing is ever sent twice.
   */
  call(command: string, ...args: RedisArgument[]): Promise<unknown>
  /** The same with the arguments as an array, which must not be changed before the call has settled. */
  callWith(command: string, args: readonly RedisArgument[]): Promise<unknown>
  /**
   * Sends a command that the server answers within `timeoutMs` by itself, and waits that much longer for the reply.
   * Commands behind it wait too, so it wants a connection of its own: see `duplicate`.
   */
  block(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown>
  /** Resolves when there is a connection; rejects with the reason when there is none in time, or the server is refused. */
  ready(): Promise<void>
  /**
   * Calls `listener` with the server id after each connect, the first included, before any call that waited is sent.
   * Returns what takes it off again.
   */
  onReconnect(listener: (serverId: string) => void): () => void
  /** Another connection to the same server, closed with this one. */
  duplicate(): Redis
  /** Ends the connection and settles every promise. */
  close(): Promise<void>
}

/** Opens at once and returns at once: calls wait for the connection. */
export function openRedis(options: RedisOptions): Redis {
  return new ReconnectingRedis(checkOptions('redis', options, redisRules))
}

interface Waiting {
  resolve(connection: Connection): void
  reject(error: Error): void
}

const RECONNECT_STEP_MS = 50
const RECONNECT_MAX_MS = 2_000

/** 50 ms × attempt, at most 2 s; up to half of it is left out by chance, so that not all processes come at once. */
function reconnectDelayMs(attempt: number): number {
  return Math.min(RECONNECT_MAX_MS, RECONNECT_STEP_MS * attempt) * (1 - Math.random() / 2)
}

/**
 * connecting → connected → connecting → … → closed. While it connects, calls wait at the gate; a server that must not
 * be used (`#refusal`) turns them away at once, and is asked again meanwhile.
 */
class ReconnectingRedis implements Redis {
  readonly scriptTimes = new ScriptTimes()
  readonly #settings: RedisSettings
  readonly #clock: Clock = systemClock
  readonly #listeners = new Set<(serverId: string) => void>()
  readonly #duplicates = new Set<Redis>()
  readonly #waiting = new Set<Waiting>()
  #serverId = ''
  #connection: Connection | undefined
  #refusal: Error | undefined
  #lastReason: string | undefined
  readonly #closing = new AbortController()
  readonly #onClose: (() => void) | undefined
  #endPause: (() => void) | undefined
  #connecting: Promise<void>

  constructor(settings: RedisSettings, onClose?: () => void) {
    this.#settings = settings
    this.#onClose = onClose
    this.#connecting = this.#connect()
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted
  }

  get serverId(): string {
    return this.#serverId
  }

  call(command: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.callWith(command, args)
  }

  callWith(command: string, args: readonly RedisArgument[]): Promise<unknown> {
    return this.#send(command, args, this.#settings.commandTimeoutMs)
  }

  block(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown> {
    return this.#send(command, args, timeoutMs + this.#settings.commandTimeoutMs)
  }

  async ready(): Promise<void> {
    if (!this.#connection?.isOpen) await this.#connected()
  }

  onReconnect(listener: (serverId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  duplicate(): Redis {
    const duplicate: Redis = new ReconnectingRedis(this.#settings, () => this.#duplicates.delete(duplicate))
    this.#duplicates.add(duplicate)
    if (this.#isClosed) void duplicate.close()
    return duplicate
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#onClose?.()
    const connection = this.#connection
    this.#connection = undefined
    this.#rejectWaiting(new ClosedError('The connection to Redis'))
    this.#endPause?.()
    const duplicates = [...this.#duplicates].map((duplicate) => duplicate.close())
    await Promise.all([connection?.close(), this.#connecting, ...duplicates])
  }

  #send(command: string, args: readonly RedisArgument[], timeoutMs: number): Promise<unknown> {
    const connection = this.#connection
    if (connection?.isOpen) return connection.send(command, args, timeoutMs)
    return this.#connected().then((next) => next.send(command, args, timeoutMs))
  }

  /** The gate: the next connection, or why there is none. */
  #connected(): Promise<Connection> {
    if (this.#isClosed) return Promise.reject(new ClosedError('The connection to Redis'))
    if (this.#refusal) return Promise.reject(this.#refusal)
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve: (connection) => {
          cancelTimer()
          resolve(connection)
        },
        reject: (error) => {
          cancelTimer()
          reject(error)
        },
      }
      const { commandTimeoutMs } = this.#settings
      const cancelTimer = this.#clock.setTimer(() => {
        this.#waiting.delete(waiting)
        const reason = this.#lastReason ?? `no connection within ${commandTimeoutMs} ms`
        reject(new StoreUnavailableError({ reason, outcome: 'not-sent' }))
      }, commandTimeoutMs)
      this.#waiting.add(waiting)
    })
  }

  #rejectWaiting(error: Error): void {
    for (const waiting of this.#waiting) waiting.reject(error)
    this.#waiting.clear()
  }

  /** Tries until there is a connection or this is closed. Never rejects. */
  async #connect(): Promise<void> {
    for (let attempt = 1; !this.#isClosed; attempt++) {
      try {
        const { connection, serverId } = await this.#open()
        if (this.#isClosed) await connection.close()
        else if (connection.isOpen) this.#accept(connection, serverId)
        else continue
        return
      } catch (error) {
        this.#note(error as Error)
      }
      if (!this.#isClosed) await this.#pause(reconnectDelayMs(attempt))
    }
  }

  /** A connection to a server that has been asked who it is and may be used. */
  async #open(): Promise<{ connection: Connection; serverId: string }> {
    const { redis, dataDir, connectionName, commandTimeoutMs, allowEviction } = this.#settings
    const embedded = redis === 'embedded' ? await ensureEmbeddedServer({ dataDir }) : undefined
    const address = embedded ? { path: embedded.socketPath } : (redis as RedisAddress)
    const { signal } = this.#closing
    const connection = await Connection.open({ address, connectionName, commandTimeoutMs, signal })
    try {
      const info = checkServer(String(await connection.send('INFO', [])), { allowEviction })
      return { connection, serverId: embedded ? await embedded.serverId() : info.runId }
    } catch (error) {
      await connection.close()
      throw error
    }
  }

  #accept(connection: Connection, serverId: string): void {
    this.#refusal = undefined
    this.#lastReason = undefined
    this.#serverId = serverId
    this.#connection = connection
    connection.onLost = (reason) => this.#reconnect(reason)
    for (const listener of this.#listeners) listener(serverId)
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const each of waiting) each.resolve(connection)
  }

  #reconnect(reason: Error): void {
    this.#connection = undefined
    if (this.#isClosed) return
    this.#note(reason)
    this.#connecting = this.#pause(reconnectDelayMs(1)).then(() => this.#connect())
  }

  #note(problem: Error): void {
    this.#lastReason = problem instanceof StoreUnavailableError ? problem.reason : problem.message
    const isRefused = problem instanceof UnsupportedRedisError || problem instanceof EmbeddedRedisMissingError
    this.#refusal = isRefused ? problem : undefined
    if (isRefused) this.#rejectWaiting(problem)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.setTimer(resolve, ms)
      this.#endPause = () => {
        cancel()
        resolve()
      }
    })
  }
}
