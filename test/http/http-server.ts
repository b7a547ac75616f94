import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { type ApiKey, createApiKey, createServer, type Role, type ServerOptions } from '../../src/http/index.ts'
import { type Queue, type QueueOptions, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'

/** Every role once, a second tenant, a key that sees only the queue `other`, and one that has expired. */
const chosenKeys = {
  admin: { role: 'admin' },
  operator: { role: 'operator' },
  viewer: { role: 'viewer' },
  tenant: { role: 'tenant', tenant: 'acme' },
  rival: { role: 'tenant', tenant: 'rival' },
  elsewhere: { role: 'admin', queues: ['other'] },
  expired: { role: 'admin', expiresAt: 1 },
} as const satisfies Record<string, { role: Role } & Partial<ApiKey>>

export type Who = keyof typeof chosenKeys

const made = Object.entries(chosenKeys).map(([id, fields]) => ({ id, fields, ...createApiKey() }))

export const keys: readonly ApiKey[] = made.map(({ id, fields, hash }) => ({ id, hash, ...fields }))

export function keyOf(who: Who): string {
  return made.find(({ id }) => id === who)?.key ?? ''
}

export function bearer(who: Who): { authorization: string } {
  return { authorization: `Bearer ${keyOf(who)}` }
}

/** A Redis for one file; a Sluice with two queues and a server for each test, under a prefix of its own. */
export class HttpServer {
  #redis: TestRedis | undefined
  #tests = 0
  #sluice: Sluice | undefined
  readonly #apps: FastifyInstance[] = []
  readonly #options: QueueOptions

  constructor(options: QueueOptions) {
    this.#options = options
  }

  get redis(): TestRedis {
    return existing(this.#redis)
  }

  get sluice(): Sluice {
    return existing(this.#sluice)
  }

  /** What the keys of this test start with. */
  get prefix(): string {
    return `test-${this.#tests}`
  }

  get mail(): Queue {
    return this.sluice.queue('mail')
  }

  /** The first server of the test, without keys unless made before. */
  get app(): FastifyInstance {
    return this.#apps[0] ?? this.create()
  }

  create(options: Partial<ServerOptions> = {}): FastifyInstance {
    const { sluice } = this
    const queues = { mail: sluice.queue('mail'), other: sluice.queue('other') }
    const app = createServer({ sluice, queues, ...options })
    this.#apps.push(app)
    return app
  }

  /** Listens on a free port of this machine; answers where. */
  async listen(options: Partial<ServerOptions> = {}): Promise<{ app: FastifyInstance; url: string; port: number }> {
    const app = this.create(options)
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    return { app, url, port: Number(new URL(url).port) }
  }

  /** A request to the first server; the body is sent as JSON. */
  async ask(
    method: NonNullable<InjectOptions['method']>,
    url: string,
    body?: unknown,
    who?: Who,
    // biome-ignore lint/suspicious/noExplicitAny: tests compare answers of every shape.
  ): Promise<{ status: number; body: any; response: LightMyRequestResponse }> {
    const response = await this.app.inject({
      method,
      url,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(who === undefined ? {} : bearer(who)),
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    })
    const isJson = /^application\/(problem\+)?json/.test(String(response.headers['content-type']))
    return { status: response.statusCode, body: isJson ? response.json() : response.body, response }
  }

  async start(): Promise<void> {
    this.#redis = await startRedis()
  }

  begin(): void {
    this.#tests += 1
    this.#sluice = new Sluice({ redis: { path: this.redis.path }, prefix: this.prefix, log: () => {} })
    for (const name of ['mail', 'other']) this.#sluice.queue(name, this.#options)
  }

  async end(): Promise<void> {
    await Promise.all(this.#apps.splice(0).map((app) => app.close()))
    await this.#sluice?.close()
  }

  async stop(): Promise<void> {
    await this.#redis?.stop()
  }
}

function existing<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('the server has not been started')
  return part
}

export function useHttpServer(options: QueueOptions = {}): HttpServer {
  const server = new HttpServer(options)
  beforeAll(() => server.start())
  beforeEach(() => server.begin())
  afterEach(() => server.end())
  afterAll(() => server.stop())
  return server
}
