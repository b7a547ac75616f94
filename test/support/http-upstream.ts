import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer, type ServerOptions } from 'node:https'
import type { AddressInfo } from 'node:net'

/** What arrived at an upstream. */
export interface HttpArrival {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A real HTTP server on loopback that remembers what it was asked. */
export class HttpUpstream {
  readonly arrivals: HttpArrival[] = []
  readonly port: number
  /** Connections that were opened to it so far. */
  connections = 0
  readonly #server: Server
  readonly #scheme: string

  private constructor(server: Server, scheme: string) {
    this.#server = server
    this.#scheme = scheme
    this.port = (server.address() as AddressInfo).port
    server.on('connection', () => {
      this.connections += 1
    })
  }

  /** @param answer - Called when the request has arrived with its body. */
  static async start(
    answer: RequestListener,
    options: { host?: string; port?: number; tls?: ServerOptions } = {},
  ): Promise<HttpUpstream> {
    let upstream: HttpUpstream
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { method = '', url: path = '', headers } = request
        upstream.arrivals.push({ method, path, headers, body: Buffer.concat(chunks).toString() })
        answer(request, response)
      })
    }
    const server = options.tls ? createSecureServer(options.tls, listener) : createServer(listener)
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1')
    await once(server, 'listening')
    upstream = new HttpUpstream(server, options.tls ? 'https' : 'http')
    return upstream
  }

  url(path: string, host = '127.0.0.1'): string {
    return `${this.#scheme}://${host}:${this.port}${path}`
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}
