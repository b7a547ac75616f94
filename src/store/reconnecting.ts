import { type Clock, systemClock } from '../clock.ts'
import { ClosedError, EmbeddedRedisMissingError, StoreUnavailableError, UnsupportedRedisError } from '../errors.ts'
import type { RedisArgument } from './command.ts'
import { Connection, type RedisAddress } from './connection.ts'
import { reconnectDelayMs } from './reconnect-delay.ts'
import type { RedisSettings } from './redis-options.ts'
import type { ConnectionWatch, Redis } from './redis-port.ts'
import { ReplicaWait } from './replica-wait.ts'
import { ScriptTimes } from './script-times.ts'
import { checkServer } from './server-info.ts'
import { nameOf, type Whereabouts } from './whereabouts.ts'

interface Waiting {
  resolve(connection: Connection): void
  reject(error: Error): void
}

/**
 * connecting → connected → connecting → … → closed. While it connects, calls wait at the gate; a server that must not
 * be used (`#refusal`) turns them away at once, and is asked again meanwhile.
 */
export class ReconnectingRedis implements Redis {
  readonly scriptTimes: ScriptTimes
  readonly #settings: RedisSettings
  readonly #newWhereabouts: () => Whereabouts
  readonly #whereabouts: Whereabouts
  /** This one and its duplicates: when one of them finds another server, the others leave the old one. */
  readonly #family: Set<ReconnectingRedis>
  readonly #clock: Clock = systemClock
  readonly #listeners = new Set<(serverId: string) => void>()
  readonly #duplicates = new Set<Redis>()
  readonly #waiting = new Set<Waiting>()
  #serverId = ''
  #connection: Connection | undefined
  /** Where the connection is, or the one that is being made. */
  #address: RedisAddress | undefined
  /** Left for another server, with replies on their way. */
  readonly #retired = new Set<Connection>()
  #refusal: Error | undefined
  #lastReason: string | undefined
  readonly #closing = new AbortController()
  readonly #onClose: (() => void) | undefined
  readonly #watch: ConnectionWatch | undefined
  /** Ends the try to connect that is under way, or the pause before the next. */
  #tryElsewhere: (() => void) | undefined
  #connecting: Promise<void>
  #replicaWait: ReplicaWait | undefined

  /** @param newWhereabouts - Called once for this connection and each duplicate. */
  constructor(
    settings: RedisSettings,
    newWhereabouts: () => Whereabouts,
    options: {
      onClose?: () => void
      family?: Set<ReconnectingRedis>
      scriptTimes?: ScriptTimes
      watch?: ConnectionWatch | undefined
    } = {},
  ) {
    this.scriptTimes = options.scriptTimes ?? new ScriptTimes()
    this.#settings = settings
    this.#newWhereabouts = newWhereabouts
    this.#whereabouts = newWhereabouts()
    this.#onClose = options.onClose
    this.#watch = options.watch
    this.#family = options.family ?? new Set()
    this.#family.add(this)
    this.#whereabouts.onMove((address, how) => this.#moveTo(address, how))
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

  async callEach(command: string, ...args: RedisArgument[]): Promise<unknown[]> {
    return [await this.callWith(command, args)]
  }

  async ready(): Promise<void> {
    if (!this.#connection?.isOpen) await this.#connected()
  }

  onReconnect(listener: (serverId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  at(): Redis {
    return this
  }

  duplicate(): Redis {
    const duplicate: Redis = new ReconnectingRedis(this.#settings, this.#newWhereabouts, {
      onClose: () => this.#duplicates.delete(duplicate),
      family: this.#family,
    })
    this.#duplicates.add(duplicate)
    if (this.#isClosed) void duplicate.close()
    return duplicate
  }

  async confirm(key: string, serverId: string): Promise<boolean> {
    const { durability } = this.#settings
    if (!durability) return true
    this.#replicaWait ??= new ReplicaWait(this.duplicate(), durability)
    return this.#replicaWait.confirm(key, serverId)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#family.delete(this)
    this.#whereabouts.close()
    this.#onClose?.()
    this.#watch?.closed(this)
    const connection = this.#connection
    this.#connection = undefined
    this.#rejectWaiting(new ClosedError('The connection to Redis'))
    this.#tryElsewhere?.()
    const duplicates = [...this.#duplicates].map((duplicate) => duplicate.close())
    const retired = [...this.#retired].map((each) => each.close())
    await Promise.all([connection?.close(), this.#connecting, ...retired, ...duplicates])
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
      const aborted = new AbortController()
      this.#tryElsewhere = () => aborted.abort()
      try {
        const { connection, serverId } = await this.#open(aborted.signal)
        if (this.#isClosed) await connection.close()
        else if (connection.isOpen) this.#accept(connection, serverId)
        else throw new Error('the connection was lost as soon as it was made')
        return
      } catch (error) {
        if (aborted.signal.aborted) {
          attempt = 0
          continue
        }
        this.#note(error as Error)
        this.#whereabouts.lost(error as Error)
      }
      if (!this.#isClosed) await this.#pause(reconnectDelayMs(attempt))
    }
  }

  /** A connection to a server that has been asked who it is and may be used. */
  async #open(signal: AbortSignal): Promise<{ connection: Connection; serverId: string }> {
    const { connectionName, commandTimeoutMs, allowEviction } = this.#settings
    const place = await this.#whereabouts.find(signal)
    this.#address = place.address
    const connection = await Connection.open({ address: place.address, connectionName, commandTimeoutMs, signal })
    const giveUp = () => void connection.close()
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      const info = checkServer(String(await connection.send('INFO', [])), { allowEviction })
      return { connection, serverId: place.serverId ? await place.serverId() : info.runId }
    } catch (error) {
      await connection.close()
      throw error
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  #accept(connection: Connection, serverId: string): void {
    const isOther = this.#serverId !== '' && this.#serverId !== serverId
    this.#refusal = undefined
    this.#lastReason = undefined
    this.#serverId = serverId
    this.#connection = connection
    connection.onLost = (reason) => this.#reconnect(connection, reason)
    this.#whereabouts.reached()
    this.#watch?.made(this)
    for (const listener of this.#listeners) listener(serverId)
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const each of waiting) each.resolve(connection)
    if (isOther) for (const each of this.#family) each.#leaveUnlessAt(serverId)
  }

  /** A blocking read would notice only at its end that its server hangs. */
  #leaveUnlessAt(serverId: string): void {
    if (this.#connection && this.#serverId !== serverId) this.#connection.retire(new Error('the server was replaced'))
  }

  #moveTo(address: RedisAddress, how: 'moved' | 'replaced'): void {
    if (this.#address && nameOf(this.#address) === nameOf(address)) return
    const reason = new Error(`the server is at ${nameOf(address)} now`)
    if (!this.#connection) this.#tryElsewhere?.()
    else if (how === 'moved') this.#connection.retire(reason)
    else this.#connection.abandon(reason)
  }

  #reconnect(connection: Connection, reason: Error): void {
    this.#connection = undefined
    if (this.#isClosed) return
    this.#retired.add(connection)
    void connection.ended.then(() => this.#retired.delete(connection))
    this.#note(reason)
    this.#whereabouts.lost(reason)
    this.#connecting = this.#pause(reconnectDelayMs(1)).then(() => this.#connect())
  }

  #note(problem: Error): void {
    this.#lastReason = problem instanceof StoreUnavailableError ? problem.reason : problem.message
    const isRefused = problem instanceof UnsupportedRedisError || problem instanceof EmbeddedRedisMissingError
    this.#refusal = isRefused ? problem : undefined
    if (!this.#isClosed) this.#watch?.lost(this, this.#lastReason)
    if (isRefused) this.#rejectWaiting(problem)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.setTimer(resolve, ms)
      this.#tryElsewhere = () => {
        cancel()
        resolve()
      }
    })
  }
}
