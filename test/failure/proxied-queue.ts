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

  private constructor(parts: { redis: TestRedis; proxy: TcpProxy; sluice: Sluice; queue: Queue }) {
    this.redis = parts.redis
    this.proxy = parts.proxy
    this.#sluice = parts.sluice
    this.queue = parts.queue
  }

  /** When it cannot start, it ends what it has started. */
  static async start<Message>(name: string, options: QueueOptions): Promise<ProxiedQueue<Message>> {
    const redis = await startRedis({ appendonly: true, config: { appendfsync: 'always' } })
    const sluice = new Sluice({ redis: redis.url, log: () => {} })
    try {
      const queue = sluice.queue(name, options)
      const proxy = await TcpProxy.start({ port: redis.port })
      return new ProxiedQueue<Message>({ redis, proxy, sluice, queue })
    } catch (error) {
      await stopAll(
        () => [sluice.close()],
        () => [redis.stop()],
      )
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
