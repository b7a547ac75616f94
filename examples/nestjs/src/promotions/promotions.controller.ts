import { Body, Controller, Delete, Get, NotFoundException, Param, Post } from '@nestjs/common'
import type { Queue } from 'sluice'
import { InjectQueue } from 'sluice/nestjs'

@Controller('promotions')
export class PromotionsController {
  constructor(@InjectQueue('promotions') private readonly promotions: Queue) {}

  @Post(':tenant')
  async send(@Param('tenant') tenant: string, @Body() recipients: string[]) {
    const jobs = recipients.map((to) => ({ payload: { to } }))
    const action = await this.promotions.submit({ tenant, type: 'SEND_PROMOTION', jobs })
    return { action: action.name, accepted: action.accepted }
  }

  @Post(':tenant/welcome/:to')
  async welcome(@Param('tenant') tenant: string, @Param('to') to: string) {
    const job = { tenant, type: 'SEND_PROMOTION', id: `welcome-${to}`, payload: { to } }
    const { id, isNew } = await this.promotions.submit(job)
    return { id, isNew } // the same id again is the same job
  }

  @Get(':tenant/:action')
  async progress(@Param('tenant') tenant: string, @Param('action') name: string) {
    const view = await this.promotions.action(name, { tenant }).view()
    if (!view) throw new NotFoundException()
    return { state: view.state, counts: view.counts, etaMs: view.etaMs }
  }

  @Delete(':tenant/:action')
  async cancel(@Param('tenant') tenant: string, @Param('action') name: string) {
    const { state, counts } = await this.promotions.action(name, { tenant }).cancel()
    return { state, counts } // what waited is dropped, what runs gets its signal
  }
}
