import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common'
import type { Queue } from 'sluice'
import { InjectQueue } from 'sluice/nestjs'

@Injectable()
export class PromotionsSchedule implements OnApplicationBootstrap {
  private readonly logger = new Logger(PromotionsSchedule.name)

  constructor(@InjectQueue('promotions') private readonly promotions: Queue) {}

  onApplicationBootstrap() {
    const job = { tenant: 'acme', type: 'SEND_PROMOTION', payload: { to: 'everybody@acme.example.org' } }
    // Not awaited: a Redis that is away would hold up the start.
    this.promotions.schedules
      .set('mondays', { cron: '0 9 * * 1', timeZone: 'Europe/Berlin', job })
      .catch((error: unknown) => this.logger.error(error))
  }
}
