import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common'
import { type Queue, Sluice } from 'sluice'
import { createServer } from 'sluice/http'
import { InjectQueue } from 'sluice/nestjs'

@Injectable()
export class SluiceServer implements OnApplicationBootstrap, OnApplicationShutdown {
  private server: ReturnType<typeof createServer> | undefined

  constructor(
    private readonly sluice: Sluice,
    @InjectQueue('promotions') private readonly promotions: Queue,
  ) {}

  /** What Prometheus reads. */
  async metrics() {
    const { statusCode, body } = await this.get().inject('/metrics') // asked within the process
    return statusCode === 200 ? body : undefined
  }

  async onApplicationBootstrap() {
    const port = process.env.SLUICE_PORT // of a worker: /metrics, /healthz and /readyz
    if (port) await this.get().listen({ port: Number(port) })
  }

  async onApplicationShutdown() {
    await this.server?.close()
  }

  private get() {
    this.server ??= createServer({ sluice: this.sluice, queues: { promotions: this.promotions } })
    return this.server
  }
}
