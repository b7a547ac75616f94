import { Controller, Get, ServiceUnavailableException } from '@nestjs/common'
import { SluiceHealthIndicator } from 'sluice/nestjs'

@Controller('health')
export class HealthController {
  constructor(private readonly indicator: SluiceHealthIndicator) {}

  @Get()
  async check() {
    const health = await this.indicator.isHealthy('sluice', { timeoutMs: 500 })
    if (health.sluice.status === 'down') throw new ServiceUnavailableException(health)
    return health // { "sluice": { "status": "up", "latencyMs": 1 } }
  }
}
