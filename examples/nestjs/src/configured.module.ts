import { Injectable, Module } from '@nestjs/common'
import { type SharedLimit, Sluice } from 'sluice'
import { SluiceModule } from 'sluice/nestjs'
import { PartnerApi } from './promotions/partner-api.js'
import { PromotionsProcessor } from './promotions/promotions.processor.js'

@Injectable()
class Settings {
  readonly redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
}

@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Module({
  providers: [
    { provide: 'PARTNER_LIMIT', inject: [Sluice], useFactory: (sluice: Sluice) => sluice.limit('partner', '300/s') },
  ],
  exports: ['PARTNER_LIMIT'],
})
class LimitsModule {}

@Module({
  imports: [
    SluiceModule.forRootAsync({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: ({ redis }: Settings) => ({ redis }),
    }),
    SluiceModule.registerQueueAsync({
      name: 'promotions',
      imports: [LimitsModule],
      inject: ['PARTNER_LIMIT'],
      useFactory: (partner: SharedLimit) => ({ limits: { calls: partner } }),
    }),
  ],
  providers: [PartnerApi, PromotionsProcessor],
})
export class ConfiguredModule {}
