import { Logger } from '@nestjs/common'
import type { QueueEvent } from 'sluice'
import { OnQueueEvent, QueueEventsListener } from 'sluice/nestjs'

@QueueEventsListener('promotions')
export class PromotionsAudit {
  private readonly logger = new Logger(PromotionsAudit.name)

  @OnQueueEvent(['action.completed', 'action.failed', 'action.canceled'])
  ended({ type, tenant, action }: QueueEvent) {
    this.logger.log(`${type}: ${action} of ${tenant}`)
  }

  @OnQueueEvent('job.dead')
  dead({ tenant, job, reason }: QueueEvent) {
    this.logger.warn(`job ${job} of ${tenant} is dead: ${reason}`)
  }
}
