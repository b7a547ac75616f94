import { Controller, Get } from '@nestjs/common'
import { HealthCheck, HealthCheckService } from '@nestjs/terminus'
import { SluiceHealthIndicator } from 'sluice/nestjs'

@Controller('terminus')
export class TerminusController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly sluice: SluiceHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.sluice.isHealthy('sluice')])
  }
}
