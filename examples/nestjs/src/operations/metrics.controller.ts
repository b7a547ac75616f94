import { Controller, Get, ServiceUnavailableException, StreamableFile } from '@nestjs/common'
import { SluiceServer } from './sluice-server.js'

@Controller('metrics')
export class MetricsController {
  constructor(private readonly server: SluiceServer) {}

  @Get()
  async scrape() {
    const text = await this.server.metrics()
    if (text === undefined) throw new ServiceUnavailableException('The figures cannot be read at the moment.')
    // Not a text with @Header: that would also be the type of an error's answer.
    return new StreamableFile(Buffer.from(text), { type: 'text/plain; version=0.0.4; charset=utf-8' })
  }
}
