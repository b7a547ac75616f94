import { discard, type Job, type JobContext, throttled } from 'sluice'
import { Process, Processor } from 'sluice/nestjs'
import { PartnerApi } from './partner-api.js'
import type { Promotion } from './promotion.js'

@Processor('promotions', { concurrency: 50 })
export class PromotionsProcessor {
  constructor(private readonly partner: PartnerApi) {}

  @Process<Promotion>('SEND_PROMOTION', { timeoutMs: 10_000 })
  async send(job: Job<Promotion>, context: JobContext) {
    await context.admit() // the limits allow a call now
    const status = await this.partner.send(job.payload, context.signal)
    if (status === 429) return throttled({ retryAfterMs: 1_000 }) // comes again, costs no retry
    if (status === 404) return discard('no such recipient') // a dead letter now
    if (status !== 200) throw new Error(`the partner answered ${status}`) // retried, with growing pauses
    return { status }
  }
}
