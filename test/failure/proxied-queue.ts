import { type Queue, type QueueOptions, Sluice } from '../../src/index.ts'
import { startRedis, type TestRedis } from '../../src/testing/redis-server.ts'
import { stopAll } from '../support/stop-all.ts'
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

  /** When it cannot start, it ends what it has started. */
  static async start<Message>(name: string, options: QueueOptions): Promise<ProxiedQueue<Message>> {
    const redis = await startRedis({ appendonly: true, config: { appendfsync: 'always' } })
    let proxy: TcpProxy | undefined
    try {
      proxy = await TcpProxy.start({ port: redis.port })
      return new ProxiedQueue<Message>(redis, proxy, name, options)
    } catch (error) {
      await Promise.all([proxy?.close(), redis.stop()])
      throw error
    }
  }

  /** A process of this program; ended with the queue. */
  child(program: string, settings: object): Child<Message> {
    const child = new Child<Message>(program, settings)
    this.children.push(child)
    return child
  }

  async stop(): Promise<void> {
    await stopAll(
      () => this.children.map((child) => child.end()),
      () => [this.#sluice.close()],
      () => [this.proxy.close()],
      () => [this.redis.stop()],
    )
  }
}
