import { setTimeout as sleep } from 'node:timers/promises'
import { Injectable } from '@nestjs/common'
import type { Promotion } from './promotion.js'

@Injectable()
export class PartnerApi {
  private readonly url = process.env.PARTNER_URL

  /** Answers the status. */
  async send(promotion: Promotion, signal: AbortSignal): Promise<number> {
    if (!this.url) return this.pretend(promotion, signal)
    const { status } = await fetch(`${this.url}/${promotion.to}`, { method: 'POST', signal })
    return status
  }

  private async pretend({ to }: Promotion, signal: AbortSignal): Promise<number> {
    await sleep(20, undefined, { signal })
    return to.includes('@') ? 200 : 404
  }
}
