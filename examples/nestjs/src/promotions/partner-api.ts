import { setTimeout as sleep } from 'node:timers/promises'
import { Injectable } from '@nestjs/common'
import type { Promotion } from './promotion.js'

@Injectable()
export class PartnerApi {
  private readonly url = process.env.PARTNER_URL

  async send(promotion: Promotion, signal: AbortSignal): Promise<Response> {
    if (!this.url) return this.pretend(promotion, signal)
    const reply = await fetch(`${this.url}/${promotion.to}`, { method: 'POST', signal })
    await reply.arrayBuffer() // read to its end, so that the connection is free for the next call
    return reply
  }

  private async pretend({ to }: Promotion, signal: AbortSignal): Promise<Response> {
    await sleep(20, undefined, { signal })
    return new Response(null, { status: to.includes('@') ? 200 : 404 })
  }
}
