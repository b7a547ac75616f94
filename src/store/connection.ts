import { Redis as Client, ReplyError } from 'ioredis'
import { definedOnly } from '../defined-only.ts'
import { StoreOutOfMemoryError, StoreUnavailableError } from '../errors.ts'
import { PlainCommand, type RedisArgument } from './command.ts'

/** Where a server is, and who we are to it. */
export interface RedisAddress {
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** Of a unix socket; then host and port do not matter. */
  readonly path?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly db?: number | undefined
  /** True for the defaults of Node, or what `tls.connect` takes. */
  readonly tls?: boolean | object | undefined
}

export interface ConnectionOptions {
  readonly address: RedisAddress
  readonly connectionName: string
  readonly commandTimeoutMs: number
  /** Gives up opening. */
  readonly signal?: AbortSignal
}

/** A command on the wire. Replies come in the order of the commands, so the first of the line is the oldest. */
interface Call {
  readonly deadline: number
  readonly reject: (error: Error) => void
  settled: boolean
  next: Call | undefined
}

// How long a socket may take to say goodbye before it is cut.
const DISCONNECT_TIMEOUT_MS = 200
// What was sent to a server that is left for another one may still be answered for this long.
const LAST_REPLIES_MS = 500

/**
 * One connection, from its opening to its end: it is never restored, another one takes its place. It is lost as soon
 * as one command is not answered in time, because nothing that comes after it would be; then every command that
 * waits is rejected with an unknown outcome. ioredis only speaks the protocol here: none of its queues, retries and
 * time-outs is in use, since each of them could run a command twice or leave a promise open.
 */
export class Connection {
  readonly #client: Client
  readonly #commandTimeoutMs: number
  #first: Call | undefined
  #last: Call | undefined
  #deadlineTimer: NodeJS.Timeout | undefined
  #isCorked = false
  #isRetired = false
  #isLost = false
  /** Called once, when nothing can be sent any more: the connection is retired, lost or closed. */
  onLost: ((reason: Error) => void) | undefined
  /** Resolves when every command has been settled and the socket is let go. */
  readonly ended: Promise<void>
  #end: () => void = () => {}

  private constructor(client: Client, commandTimeoutMs: number) {
    this.#client = client
    this.#commandTimeoutMs = commandTimeoutMs
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  /** Rejects with a StoreUnavailableError when there is no connection within commandTimeoutMs. */
  static async open({ address, connectionName, commandTimeoutMs, signal }: ConnectionOptions): Promise<Connection> {
    const { tls, ...place } = definedOnly(address)
    const client = new Client({
      ...place,
      ...(tls ? { tls: tls === true ? {} : tls } : {}),
      connectionName,
      lazyConnect: true,
      protocol: 2,
      disableClientInfo: true,
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
      connectTimeout: commandTimeoutMs,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    })
    const connection = new Connection(client, commandTimeoutMs)
    // The promises of ioredis only say that the connection was closed; what closed it comes as an event before.
    let lastError: Error | undefined
    client.on('error', (error: Error) => {
      lastError = error
    })
    // A server that accepts and then says nothing keeps ioredis waiting for the answer to its own first commands.
    const giveUp = () => {
      lastError ??= new Error(`no connection within ${commandTimeoutMs} ms`)
      connection.#lose(lastError)
    }
    const timer = setTimeout(giveUp, commandTimeoutMs)
    signal?.addEventListener('abort', giveUp)
    try {
      await client.connect()
    } catch (error) {
      const cause = lastError ?? (error as Error)
      connection.#lose(cause)
      throw new StoreUnavailableError({ reason: describe(cause), outcome: 'not-sent', cause })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
    }
    client.once('close', () => connection.#lose(lastError ?? new Error('the server closed the connection')))
    return connection
  }

  /** Whether a command can be written now. */
  get isOpen(): boolean {
    return !this.#isLost && !this.#isRetired && this.#client.status === 'ready' && this.#client.stream.writable
  }

  /**
   * Settles within `timeoutMs`. Rejects with StoreUnavailableError, with StoreOutOfMemoryError, or with the error of
   * the server as it is.
   */
  send(command: string, args: readonly RedisArgument[], timeoutMs = this.#commandTimeoutMs): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (!this.isOpen) {
        reject(new StoreUnavailableError({ reason: 'the connection was lost', outcome: 'not-sent' }))
        return
      }
      const sent = new PlainCommand(command, args)
      const call: Call = { deadline: performance.now() + timeoutMs, reject, settled: false, next: undefined }
      this.#append(call)
      this.#cork()
      sent.promise.then(
        (reply) => {
          sent.release()
          this.#settle(call)
          resolve(reply)
        },
        (error: Error) => {
          // What lost the connection has rejected the call already, and better.
          if (call.settled) return
          sent.release()
          this.#settle(call)
          reject(this.#failure(error))
        },
      )
      try {
        this.#client.sendCommand(sent)
      } catch (error) {
        this.#settle(call)
        reject(error as Error)
      }
    })
  }

  /** Sends nothing more, and ends when what was sent has been answered, or could have been. */
  retire(reason: Error): void {
    if (this.#isLost || this.#isRetired) return
    this.#isRetired = true
    const timer = setTimeout(() => this.#lose(reason), LAST_REPLIES_MS)
    timer.unref()
    this.#tellLost(reason)
    this.#endWhenRetired()
  }

  /** Ends at once, as a lost one: nobody may believe what the server would still answer. */
  abandon(reason: Error): void {
    this.#lose(reason)
  }

  /** Ends the connection; commands that wait for a reply are rejected with an unknown outcome. */
  async close(): Promise<void> {
    const { stream } = this.#client
    const ended =
      stream && !stream.destroyed ? new Promise<void>((resolve) => stream.once('close', () => resolve())) : undefined
    this.#lose(new Error('it was closed by its owner'), { politely: true })
    await ended
  }

  #append(call: Call): void {
    if (this.#last) this.#last.next = call
    else this.#first = call
    this.#last = call
    if (this.#deadlineTimer === undefined) this.#watchDeadline()
  }

  #settle(call: Call): void {
    call.settled = true
    while (this.#first?.settled) {
      const { next } = this.#first
      // A chain through calls long gone would keep all of them, replies included, until the next full collection.
      this.#first.next = undefined
      this.#first = next
    }
    if (this.#first !== undefined) return
    this.#last = undefined
    this.#endWhenRetired()
  }

  #endWhenRetired(): void {
    if (this.#isRetired && this.#first === undefined) this.#lose(new Error('it was retired'), { politely: true })
  }

  /** One timer for all: it sleeps until the deadline of the oldest call it saw, then looks at the oldest of that moment. */
  #watchDeadline(): void {
    const oldest = this.#first
    if (oldest === undefined) {
      this.#deadlineTimer = undefined
      return
    }
    this.#deadlineTimer = setTimeout(() => {
      if (!this.#isOverdue()) this.#watchDeadline()
      // When the process itself was stopped or busy the reply may be waiting in the socket: let it be read first.
      else setImmediate(() => setImmediate(() => this.#loseWhenOverdue()))
    }, oldest.deadline - performance.now())
  }

  #isOverdue(): boolean {
    return this.#first !== undefined && this.#first.deadline <= performance.now()
  }

  #loseWhenOverdue(): void {
    if (this.#isLost) return
    if (this.#isOverdue()) this.#lose(new Error('no reply in time'))
    else this.#watchDeadline()
  }

  /** Commands of one turn of the event loop leave in one write: a system call each would cost more than the command. */
  #cork(): void {
    if (this.#isCorked) return
    const { stream } = this.#client
    this.#isCorked = true
    stream.cork()
    process.nextTick(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }

  #failure(error: Error): Error {
    if (!(error instanceof ReplyError)) {
      return new StoreUnavailableError({ reason: describe(error), outcome: 'unknown', cause: error })
    }
    // ioredis hangs the command with all its arguments on the error: payloads do not belong into logs.
    delete (error as { command?: unknown }).command
    const word = error.message.split(' ', 1)[0] ?? ''
    if (word === 'OOM') return new StoreOutOfMemoryError({ cause: error })
    const policy = REFUSALS.get(word) ?? (NOT_HERE.test(error.message) ? 'stay' : undefined)
    if (policy === undefined) return error
    if (policy === 'reconnect') queueMicrotask(() => this.retire(error))
    return new StoreUnavailableError({ reason: error.message, outcome: 'not-sent', cause: error })
  }

  #lose(reason: Error, { politely = false } = {}): void {
    if (this.#isLost) return
    this.#isLost = true
    clearTimeout(this.#deadlineTimer)
    this.#client.disconnect()
    if (!politely) this.#client.stream?.destroy()
    for (let call = this.#first; call; call = call.next) {
      if (call.settled) continue
      call.settled = true
      call.reject(new StoreUnavailableError({ reason: describe(reason), outcome: 'unknown', cause: reason }))
    }
    this.#first = undefined
    this.#last = undefined
    this.#end()
    this.#tellLost(reason)
  }

  #tellLost(reason: Error): void {
    const { onLost } = this
    this.onLost = undefined
    onLost?.(reason)
  }
}

/**
 * Errors by which a server says that it cannot serve now; none of them has run the command. `reconnect`: another
 * server may be behind the address by now, or this one may have to be asked again who it is. While a slot migrates
 * (ASK, TRYAGAIN) its scripts can run nowhere, because their keys are in two places.
 */
const REFUSALS = new Map<string, 'reconnect' | 'stay'>([
  ['LOADING', 'reconnect'],
  ['READONLY', 'reconnect'],
  ['MASTERDOWN', 'reconnect'],
  ['UNBLOCKED', 'reconnect'],
  ['NOAUTH', 'reconnect'],
  ['BUSY', 'stay'],
  ['MISCONF', 'stay'],
  ['NOREPLICAS', 'stay'],
  ['MOVED', 'reconnect'],
  ['CLUSTERDOWN', 'stay'],
  ['ASK', 'stay'],
  ['TRYAGAIN', 'stay'],
])

/**
 * What a script is told that meets a key of a slot that is migrating, or a Cluster that is down. Scripts read every key
 * before they write the first, so it has changed nothing.
 */
const NOT_HERE = /Script attempted to (access a non local key|execute a (write )?command while the cluster is down)/

/** `connect ECONNREFUSED 127.0.0.1:1` also for the error Node makes of several addresses, which has no message. */
function describe(error: Error): string {
  if (error instanceof AggregateError) return error.errors.map((each) => String(each?.message ?? each)).join(', ')
  return error.message
}
