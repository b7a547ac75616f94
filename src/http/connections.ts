import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Who is connected, and who of them has asked for something. Node closes connections that have been idle since their
 * last request; browsers and fetch also open some ahead of the first, and those would hold up a server that closes.
 */
export class Connections {
  readonly #open = new Set<Socket>()
  readonly #busy = new Set<Socket>()
  #isClosing = false

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
    })
    server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
      this.#busy.add(socket)
      response.once('close', () => {
        this.#busy.delete(socket)
        // Kept alive, it would wait for a request that is not served any more.
        if (this.#isClosing) socket.destroySoon()
      })
    })
  }

  get count(): number {
    return this.#open.size
  }

  /** Closes those on which nothing is under way, and the others when that is over. */
  close(): void {
    this.#isClosing = true
    for (const socket of this.#open) if (!this.#busy.has(socket)) socket.destroy()
  }
}
