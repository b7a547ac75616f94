import { type Queue, type QueueOptions, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { Child } from './child.ts'

/** A queue on a Redis that forgets nothing, and processes that reach it through a proxy; the test itself never does. */
export class ProxiedQueue<Message> {
  readonly redis: TestRedis
  readonly proxy: TcpProxy
  readonly queue: Queue
  readonly children: Child<Message>[] = []
  readonly #sluice: Sluice

  private constructor(redis: TestRedis, proxy: TcpProxy, name: string, options: QueueOptions) {
    this.redis = redis
    this.proxy = proxy
    this.#sluice = new Sluice({ redis: redis.url, log: () => {} })
    this.queue = this.#sluice.queue(name, options)
  }

  static async start<Message>(name: string, options: QueueOptions): Promise<ProxiedQueue<Message>> {
    const redis = await startRedis({ appendonly: true, config: { appendfsync: 'always' } })
    return new ProxiedQueue<Message>(redis, await TcpProxy.start({ port: redis.port }), name, options)
  }

  /** A process of this program; ended with the queue. */
  child(program: string, settings: object): Child<Message> {
    const child = new Child<Message>(program, settings)
    this.children.push(child)
    return child
  }

  async stop(): Promise<void> {
    await Promise.all(this.children.map((child) => child.end()))
    await this.#sluice.close()
    await this.proxy.close()
    await this.redis.stop()
  }
}
