import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common'
import { type Queue, Sluice } from 'sluice'
import { createServer } from 'sluice/http'
import { InjectQueue } from 'sluice/nestjs'

@Injectable()
export class WorkerServer implements OnApplicationBootstrap, OnApplicationShutdown {
  private server: ReturnType<typeof createServer> | undefined

  constructor(
    private readonly sluice: Sluice,
    @InjectQueue('promotions') private readonly promotions: Queue,
  ) {}

  async onApplicationBootstrap() {
    const { WORKER_PORT: port, WORKER_KEY_HASH: hash } = process.env
    if (!port) return
    const keys = hash ? [{ id: 'prometheus', hash, role: 'viewer' as const }] : []
    this.server = createServer({ sluice: this.sluice, queues: { promotions: this.promotions }, keys })
    await this.server.listen({ port: Number(port), host: hash ? '0.0.0.0' : '127.0.0.1' })
  }

  async onApplicationShutdown() {
    await this.server?.close()
  }
}
