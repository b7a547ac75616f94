import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { freePort } from '../../src/testing/redis-server.ts'
import { RequestReader, type WireRequest } from './resp-requests.ts'

export interface LostReplies {
  /** Only requests that are this command, or whose bytes contain this: a script's hash, a job's id. @default all */
  containing?: string
  /** Every how many of these requests loses its reply. @default 1 */
  every?: number
  /** How many replies are lost before the rule ends by itself. @default no end */
  times?: number
  /** `reset` tells the client by closing the connection; `silence` leaves it to find out. @default 'reset' */
  how?: 'reset' | 'silence'
}

/** A rule at work. */
export interface LostRepliesRule {
  /** Replies lost so far. */
  readonly lost: number
  stop(): void
}

interface ProxyEvents {
  request: [request: WireRequest, connection: number]
  lost: [request: WireRequest]
  connection: [connection: number]
}

/**
 * Stands between clients and a Redis server, and spoils the link as told, while it runs. Requests are forwarded
 * whole, so each one has either reached the server completely or not at all.
 */
export class TcpProxy extends EventEmitter<ProxyEvents> {
  /** Added in both directions to everything that passes. */
  latencyMs = 0
  /** Writes nothing longer than this many bytes at a time; 0 for no slicing. */
  sliceBytes = 0
  /** Requests that arrived from clients since the start, by command. */
  readonly requests = new Map<string, number>()
  #port = 0
  #isBlackhole = false
  #server: Server | undefined
  #connections = 0
  readonly #target: { host?: string; port: number } | { path: string }
  readonly #links = new Set<Link>()
  readonly #rules = new Set<Rule>()

  private constructor(target: { host?: string; port: number } | { path: string }) {
    super()
    this.#target = target
  }

  static async start(target: { host?: string; port: number } | { path: string }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target)
    await proxy.accept()
    return proxy
  }

  get port(): number {
    return this.#port
  }

  get url(): string {
    return `redis://127.0.0.1:${this.#port}`
  }

  get totalRequests(): number {
    return [...this.requests.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Requests of the connections that are open, by connection. */
  get requestsByConnection(): Map<number, number> {
    return new Map([...this.#links].map((link) => [link.id, link.requests]))
  }

  /** Resets every connection now; clients may connect again at once. */
  cut(): void {
    for (const link of this.#links) link.reset()
  }

  /** New connections are refused; `cut()` those that exist to take the server away entirely. */
  async refuse(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    // The server counts as closed only when its last connection has; here it is enough that it listens no more.
    server.close()
  }

  /** Takes new connections again, on the same port. */
  async accept(): Promise<void> {
    if (this.#server !== undefined) return
    const server = createServer({ noDelay: true, pauseOnConnect: true }, (socket) => this.#onConnection(socket))
    this.#server = server
    if (this.#port === 0) this.#port = await freePort()
    server.listen(this.#port, '127.0.0.1')
    await once(server, 'listening')
  }

  /**
   * Accepts connections and swallows what either side says. After `heal()` new connections work; those that lost
   * bytes stay open and silent for ever, as half-open connections do: clients must give them up by themselves.
   */
  blackhole(): void {
    this.#isBlackhole = true
  }

  heal(): void {
    this.#isBlackhole = false
  }

  /** The server does what a request asks for, and the client never learns of it. */
  loseReplies(options: LostReplies = {}): LostRepliesRule {
    const rule = new Rule(options, (ended) => this.#rules.delete(ended))
    this.#rules.add(rule)
    return rule
  }

  async close(): Promise<void> {
    await this.refuse()
    this.cut()
  }

  #onConnection(client: Socket): void {
    const id = ++this.#connections
    const link: Link = new Link(id, client, connect({ ...this.#target, noDelay: true }), {
      latencyMs: () => this.latencyMs,
      sliceBytes: () => this.sliceBytes,
      isBlackhole: () => this.#isBlackhole,
      losesReply: (request) => this.#count(request, id),
      onClose: () => this.#links.delete(link),
    })
    this.#links.add(link)
    this.emit('connection', id)
  }

  #count(request: WireRequest, connection: number): 'reset' | 'silence' | undefined {
    this.requests.set(request.command, (this.requests.get(request.command) ?? 0) + 1)
    this.emit('request', request, connection)
    for (const rule of this.#rules) {
      if (!rule.takes(request)) continue
      this.emit('lost', request)
      return rule.how
    }
    return undefined
  }
}

class Rule implements LostRepliesRule {
  readonly how: 'reset' | 'silence'
  lost = 0
  #seen = 0
  readonly #options: LostReplies
  readonly #onEnd: (rule: Rule) => void

  constructor(options: LostReplies, onEnd: (rule: Rule) => void) {
    this.#options = options
    this.#onEnd = onEnd
    this.how = options.how ?? 'reset'
  }

  takes(request: WireRequest): boolean {
    const { containing, every = 1, times = Number.POSITIVE_INFINITY } = this.#options
    if (containing !== undefined && !isMatch(request, containing)) return false
    if (++this.#seen % every !== 0) return false
    if (++this.lost >= times) this.stop()
    return true
  }

  stop(): void {
    this.#onEnd(this)
  }
}

function isMatch(request: WireRequest, text: string): boolean {
  return request.command === text.toUpperCase() || request.bytes.includes(text)
}

interface LinkConditions {
  latencyMs(): number
  sliceBytes(): number
  isBlackhole(): boolean
  losesReply(request: WireRequest): 'reset' | 'silence' | undefined
  onClose(): void
}

/** One client's connection and the one to the server that belongs to it. */
class Link {
  readonly id: number
  requests = 0
  #isSilent = false
  #isClosed = false
  readonly #client: Socket
  readonly #server: Socket
  readonly #conditions: LinkConditions
  readonly #reader = new RequestReader()
  readonly #toServer: Lane
  readonly #toClient: Lane

  constructor(id: number, client: Socket, server: Socket, conditions: LinkConditions) {
    this.id = id
    this.#client = client
    this.#server = server
    this.#conditions = conditions
    this.#toServer = new Lane(server, conditions)
    this.#toClient = new Lane(client, conditions)
    client.on('data', (chunk) => this.#fromClient(chunk))
    server.on('data', (chunk) => {
      if (!this.#swallows()) this.#toClient.push(chunk)
    })
    client.on('error', () => this.reset())
    server.on('error', () => this.reset())
    client.on('close', () => this.#close())
    server.on('close', () => {
      if (!this.#isSilent) this.#close()
    })
    client.resume()
  }

  reset(): void {
    if (!this.#client.destroyed) this.#client.resetAndDestroy()
    this.#close()
  }

  #fromClient(chunk: Buffer): void {
    for (const request of this.#reader.push(chunk)) {
      this.requests++
      const loss = this.#conditions.losesReply(request)
      if (this.#swallows()) continue
      this.#toServer.push(request.bytes)
      if (loss !== undefined) this.#loseReply(loss)
    }
  }

  /** A connection with a hole in its stream cannot be used any more, so it stays silent once it has lost a byte. */
  #swallows(): boolean {
    if (this.#conditions.isBlackhole()) this.#isSilent = true
    return this.#isSilent
  }

  /**
   * The end of the stream follows the request: Redis executes what it has read before it sees the end and closes.
   * So the client is told (if at all) only when the request has certainly been executed.
   */
  #loseReply(how: 'reset' | 'silence'): void {
    this.#isSilent = true
    if (how === 'reset') this.#server.once('close', () => this.reset())
    this.#toServer.end()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#client.destroy()
    this.#server.destroy()
    this.#conditions.onClose()
  }
}

/** One direction: what is pushed leaves in the same order, later and in pieces where the conditions say so. */
class Lane {
  readonly #to: Socket
  readonly #conditions: LinkConditions
  #last: Promise<void> | undefined

  constructor(to: Socket, conditions: LinkConditions) {
    this.#to = to
    this.#conditions = conditions
  }

  push(chunk: Buffer): void {
    const latencyMs = this.#conditions.latencyMs()
    const sliceBytes = this.#conditions.sliceBytes()
    if (this.#last === undefined && latencyMs === 0 && sliceBytes === 0) {
      this.#write(chunk)
      return
    }
    const due = latencyMs === 0 ? Promise.resolve() : new Promise<void>((resolve) => setTimeout(resolve, latencyMs))
    this.#then(async () => {
      await due
      for (const slice of slices(chunk, sliceBytes)) {
        this.#write(slice)
        if (sliceBytes > 0) await new Promise((resolve) => setImmediate(resolve))
      }
    })
  }

  end(): void {
    if (this.#last === undefined) this.#to.end()
    else
      this.#then(async () => {
        this.#to.end()
      })
  }

  #then(step: () => Promise<void>): void {
    const last: Promise<void> = (this.#last ?? Promise.resolve()).then(step).then(() => {
      if (this.#last === last) this.#last = undefined
    })
    this.#last = last
  }

  #write(chunk: Buffer): void {
    if (!this.#to.destroyed && this.#to.writable) this.#to.write(chunk)
  }
}

function* slices(chunk: Buffer, bytes: number): Generator<Buffer> {
  if (bytes === 0) yield chunk
  else for (let at = 0; at < chunk.length; at += bytes) yield chunk.subarray(at, at + bytes)
}
