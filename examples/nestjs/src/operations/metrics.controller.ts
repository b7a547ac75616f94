import {
  Controller,
  Get,
  type OnApplicationShutdown,
  ServiceUnavailableException,
  StreamableFile,
} from '@nestjs/common'
import { type Queue, Sluice } from 'sluice'
import { createServer } from 'sluice/http'
import { InjectQueue } from 'sluice/nestjs'

@Controller('metrics')
export class MetricsController implements OnApplicationShutdown {
  private server: ReturnType<typeof createServer> | undefined

  constructor(
    private readonly sluice: Sluice,
    @InjectQueue('promotions') private readonly promotions: Queue,
  ) {}

  @Get()
  async scrape() {
    // Sluice's own server, which does not listen here: it is asked within the process.
    this.server ??= createServer({ sluice: this.sluice, queues: { promotions: this.promotions } })
    const { statusCode, body } = await this.server.inject('/metrics')
    if (statusCode !== 200) throw new ServiceUnavailableException('The figures cannot be read at the moment.')
    // Not a text with @Header: that would also be the type of an error's answer.
    return new StreamableFile(Buffer.from(body), { type: 'text/plain; version=0.0.4; charset=utf-8' })
  }

  async onApplicationShutdown() {
    await this.server?.close()
  }
}
