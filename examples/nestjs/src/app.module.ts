import { Module } from '@nestjs/common'
import { SluiceModule } from 'sluice/nestjs'
import { HealthController } from './health.controller.js'
import { OperationsModule } from './operations/operations.module.js'
import { PromotionsModule } from './promotions/promotions.module.js'

@Module({
  imports: [
    SluiceModule.forRoot({
      redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
      defaults: { queue: { limits: { queue: '500/s' }, leaseMs: 5_000 } },
    }),
    PromotionsModule,
    OperationsModule,
  ],
  controllers: [HealthController],
})
export class AppModule {}
