import { Logger } from '@nestjs/common'
import type { Queue, QueueEvent } from 'sluice'
import { InjectQueue, OnQueueEvent, QueueEventsListener } from 'sluice/nestjs'

@QueueEventsListener('promotions')
export class PromotionsAudit {
  private readonly logger = new Logger(PromotionsAudit.name)

  constructor(@InjectQueue('promotions') private readonly promotions: Queue) {}

  @OnQueueEvent(['action.completed', 'action.failed', 'action.canceled'])
  async ended({ type, tenant, action }: QueueEvent) {
    if (action === undefined || tenant === undefined) return // other events are without
    const view = await this.promotions.action(action, { tenant }).view()
    if (!view) return // nothing of it was ever stored
    this.logger.log(`${type}: ${action} of ${tenant}, ${view.counts.failed} jobs failed`)
  }

  @OnQueueEvent('job.dead')
  dead({ tenant, job, reason }: QueueEvent) {
    this.logger.warn(`job ${job} of ${tenant} is dead: ${reason}`)
  }
}
