import { Module } from '@nestjs/common'
import { SluiceModule } from 'sluice/nestjs'
import { PartnerApi } from './partner-api.js'
import { PromotionsAudit } from './promotions.audit.js'
import { PromotionsController } from './promotions.controller.js'
import { PromotionsProcessor } from './promotions.processor.js'
import { PromotionsSchedule } from './promotions.schedule.js'

@Module({
  imports: [SluiceModule.registerQueue({ name: 'promotions', limits: { tenant: { calls: '100/s' } } })],
  controllers: [PromotionsController],
  providers: [PartnerApi, PromotionsProcessor, PromotionsAudit, PromotionsSchedule],
})
export class PromotionsModule {}
