import { discard, type Job, type JobContext, throttled } from 'sluice'
import { Process, Processor } from 'sluice/nestjs'
import { PartnerApi } from './partner-api.js'
import type { Promotion } from './promotion.js'

@Processor('promotions', { concurrency: 50 })
export class PromotionsProcessor {
  constructor(private readonly partner: PartnerApi) {}

  @Process<Promotion>('SEND_PROMOTION', { timeoutMs: 10_000, upstream: 'calls' })
  async send(job: Job<Promotion>, context: JobContext) {
    await context.admit() // the limits allow a call now
    const reply = await this.partner.send(job.payload, context.signal)
    const pushback = context.learn(reply) // of a 429, say: for how long, if it says so
    if (pushback) return throttled(pushback) // comes again then, costs no retry
    if (reply.status === 404) return discard('no such recipient') // a dead letter now
    if (!reply.ok) throw new Error(`the partner answered ${reply.status}`) // retried, 3 times, after 1, 2 and 4 s
    return { status: reply.status }
  }
}
