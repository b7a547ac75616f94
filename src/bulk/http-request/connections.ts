import type { Socket } from 'node:net'
import type { Client } from 'undici'
import { ClosedError } from '../../errors.ts'
import type { Dialer } from './dialer.ts'

type Timed = (dial: (signal: AbortSignal) => Promise<Socket>) => Promise<Socket>

/**
 * Kept connections, a bounded number for each origin.
 *
 * Not undici's own pool, for one reason: there a call that has to connect first, or to wait for a free connection, does so
 * after it was admitted, and arrives at the upstream long after its permit was given. Here a call has its connection in
 * hand, open and checked, before it asks the limits.
 */
export class Connections {
  readonly #dialer: Dialer
  readonly #maxPerOrigin: number
  readonly #origins = new Map<string, Origin>()
  /** Loaded from here on, beside whatever else starts, and not with the package: that takes a tenth of a second. */
  readonly #undici = import('undici')
  #isClosed = false

  constructor(options: { dialer: Dialer; maxPerOrigin: number }) {
    this.#dialer = options.dialer
    this.#maxPerOrigin = options.maxPerOrigin
  }

  /**
   * An open connection that is the caller's until it is given back or dropped; waits while there are too many.
   * @param timed - Runs the dialling, where there is need for it, with a signal of its own: waiting is not dialling.
   */
  async take(url: URL, signal: AbortSignal, timed: Timed): Promise<Connection> {
    if (this.#isClosed) throw new ClosedError('The processor http.request')
    signal.throwIfAborted()
    const origin = this.#originOf(url)
    await origin.enter(signal)
    try {
      const kept = origin.takeIdle()
      if (kept) return kept
      const { Client } = await this.#undici
      const socket = await timed((signal) => this.#dialer.dial(url, signal))
      return new Connection({ Client, url, origin, dialer: this.#dialer, socket })
    } catch (error) {
      origin.leave()
      throw error
    }
  }

  /** Ends what is idle. A connection in use ends when its call does. */
  close(): void {
    this.#isClosed = true
    for (const origin of this.#origins.values()) origin.close()
  }

  #originOf(url: URL): Origin {
    const known = this.#origins.get(url.origin)
    if (known) return known
    const origin = new Origin(this.#maxPerOrigin, () => this.#origins.delete(url.origin))
    this.#origins.set(url.origin, origin)
    return origin
  }
}

/** Who is at one origin: calls in progress, calls that wait for one of them to end, connections that nobody uses. */
class Origin {
  readonly idle: Connection[] = []
  isClosed = false
  readonly #max: number
  readonly #onEmpty: () => void
  readonly #waiting = new Set<() => void>()
  #inside = 0

  constructor(max: number, onEmpty: () => void) {
    this.#max = max
    this.#onEmpty = onEmpty
  }

  async enter(signal: AbortSignal): Promise<void> {
    if (this.#inside < this.#max) this.#inside += 1
    else await this.#wait(signal)
  }

  /** Whoever has waited longest takes the place. */
  leave(): void {
    const [next] = this.#waiting
    if (next) next()
    else this.#inside -= 1
    this.forgetIfEmpty()
  }

  /** What has been lost since it was given back is of no use: its call would dial when it has its permit. */
  takeIdle(): Connection | undefined {
    for (let kept = this.idle.pop(); kept; kept = this.idle.pop()) {
      if (kept.isOpen) return kept
      kept.end()
    }
    return undefined
  }

  forgetIfEmpty(): void {
    if (this.#inside === 0 && this.idle.length === 0) this.#onEmpty()
  }

  close(): void {
    this.isClosed = true
    for (const connection of this.idle.splice(0)) connection.end()
    this.forgetIfEmpty()
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = () => {
        this.#waiting.delete(enter)
        signal.removeEventListener('abort', abort)
      }
      const enter = () => {
        stop()
        resolve()
      }
      const abort = () => {
        stop()
        reject(signal.reason)
      }
      this.#waiting.add(enter)
      signal.addEventListener('abort', abort)
    })
  }
}

/** How long a connection that was lost while its call waited for the limits may take to open again. */
const REDIAL_TIMEOUT_MS = 10_000

interface ConnectionParts {
  readonly Client: typeof Client
  readonly url: URL
  readonly origin: Origin
  readonly dialer: Dialer
  readonly socket: Socket
}

export class Connection {
  readonly client: Client
  readonly #origin: Origin
  #socket: Socket
  /** The client takes the socket with its first call. */
  #isTaken = false

  constructor({ Client, url, origin, dialer, socket }: ConnectionParts) {
    this.#origin = origin
    this.#socket = socket
    this.client = new Client(url.origin, {
      connect: (_options, callback) => {
        const isFresh = !this.#isTaken && this.isOpen
        this.#isTaken = true
        // Never called back at once: the client would not notice that it is connected.
        const dialled = isFresh
          ? Promise.resolve(this.#socket)
          : dialer.dial(url, AbortSignal.timeout(REDIAL_TIMEOUT_MS))
        dialled.then(
          (open) => {
            this.#socket = open
            callback(null, open)
          },
          (error: Error) => callback(error, null),
        )
      },
      // The call's own time-out covers both, and is exact.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    this.client.on('disconnect', () => this.#forget())
  }

  /**
   * False also as soon as the client has ended it, which it does with an answer that says `connection: close`. It tells of
   * that later, after or before whoever reads the answer has come to its end.
   */
  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Only after an answer that was read to its end. */
  giveBack(): void {
    if (this.isOpen && !this.#origin.isClosed) this.#origin.idle.push(this)
    else this.end()
    this.#origin.leave()
  }

  drop(): void {
    this.end()
    this.#origin.leave()
  }

  end(): void {
    if (!this.#isTaken) this.#socket.destroy()
    this.client.destroy().catch(() => {})
  }

  /** The upstream closed it, or it was idle for too long. One in use is looked at when it is given back. */
  #forget(): void {
    const at = this.#origin.idle.indexOf(this)
    if (at === -1) return
    this.#origin.idle.splice(at, 1)
    this.end()
    this.#origin.forgetIfEmpty()
  }
}
