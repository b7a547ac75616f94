import { Body, Controller, Get, NotFoundException, Param, Post, Put, Query, StreamableFile } from '@nestjs/common'
import { describeExplanation, type Queue, Sluice } from 'sluice'
import { InjectQueue } from 'sluice/nestjs'

@Controller('operations')
export class OperationsController {
  constructor(
    private readonly sluice: Sluice,
    @InjectQueue('promotions') private readonly promotions: Queue,
  ) {}

  @Get('tenants/:tenant/why')
  async why(@Param('tenant') tenant: string) {
    const text = describeExplanation(await this.promotions.explain({ tenant })) // what it waits for, for people
    return new StreamableFile(Buffer.from(text), { type: 'text/plain; charset=utf-8' })
  }

  @Post('tenants/:tenant/pause')
  async pause(@Param('tenant') tenant: string) {
    await this.promotions.tenant(tenant).pause() // what runs goes on
  }

  @Post('tenants/:tenant/resume')
  async resume(@Param('tenant') tenant: string) {
    await this.promotions.tenant(tenant).resume()
  }

  @Put('tenants/:tenant/limits')
  async setLimits(@Param('tenant') tenant: string, @Body() { calls }: { calls: string }) {
    await this.promotions.tenant(tenant).setLimits({ calls }) // '20/s', in place of what all tenants have
    return this.promotions.limits.status('calls', tenant)
  }

  @Get('dead-letters')
  deadLetters(@Query('cursor') cursor?: string) {
    return this.promotions.deadLetters.list({ cursor, count: 50 }) // { total, letters, cursor }, newest first
  }

  @Post('dead-letters/:key/retry')
  async retry(@Param('key') key: string) {
    const isRetried = await this.promotions.deadLetters.retry(key)
    if (!isRetried) throw new NotFoundException()
  }

  @Get('actions/:id')
  async action(@Param('id') id: string) {
    const view = await this.sluice.action(id)?.view()
    if (!view) throw new NotFoundException()
    return view
  }
}
