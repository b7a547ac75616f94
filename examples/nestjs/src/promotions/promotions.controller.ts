import { Body, Controller, Delete, Get, NotFoundException, Param, Post, Put } from '@nestjs/common'
import { isSluiceError, type Queue } from 'sluice'
import { InjectQueue } from 'sluice/nestjs'

@Controller('promotions')
export class PromotionsController {
  constructor(@InjectQueue('promotions') private readonly promotions: Queue) {}

  @Post(':tenant') // who tries again sends again: see sendOnce
  async send(@Param('tenant') tenant: string, @Body() recipients: string[]) {
    const jobs = recipients.map((to) => ({ payload: { to } }))
    const action = await this.promotions.submit({ tenant, type: 'SEND_PROMOTION', jobs })
    return { action: action.name, accepted: action.accepted }
  }

  @Put(':tenant/:action')
  async sendOnce(@Param('tenant') tenant: string, @Param('action') name: string, @Body() recipients: string[]) {
    // The same request again is the same action: its name and the jobs' ids say so.
    const jobs = [...new Set(recipients)].map((to) => ({ id: to, payload: { to } }))
    try {
      const signal = AbortSignal.timeout(3_000)
      await this.promotions.submit({ tenant, action: name, type: 'SEND_PROMOTION', jobs }, { signal })
    } catch (error) {
      const hasAllJobs = isSluiceError(error) && error.code === 'SLUICE_ACTION_CLOSED'
      if (!hasAllJobs) throw error
    }
    return this.progress(tenant, name)
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
