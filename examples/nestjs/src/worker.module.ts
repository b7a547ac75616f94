import { Injectable, Module } from '@nestjs/common'
import { type SharedLimit, Sluice } from 'sluice'
import { SluiceModule } from 'sluice/nestjs'
import { logJobs } from './log-jobs.js'
import { PartnerApi } from './promotions/partner-api.js'
import { PromotionsProcessor } from './promotions/promotions.processor.js'

@Injectable()
class Settings {
  readonly redis = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379'
  readonly isWorker = process.env.ROLE !== 'api'
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
      useFactory: ({ redis, isWorker }: Settings) => ({ redis, autoStart: isWorker, prefix: 'other' }),
    }),
    SluiceModule.registerQueueAsync({
      name: 'promotions',
      imports: [LimitsModule],
      inject: ['PARTNER_LIMIT'],
      useFactory: (partner: SharedLimit) => ({ limits: { calls: partner }, middleware: [logJobs] }),
    }),
  ],
  providers: [PartnerApi, PromotionsProcessor],
})
export class WorkerModule {}
