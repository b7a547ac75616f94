import { Module } from '@nestjs/common'
import { SluiceModule } from 'sluice/nestjs'
import { HealthController } from './health.controller.js'
import { logJobs } from './log-jobs.js'
import { OperationsModule } from './operations/operations.module.js'
import { PromotionsModule } from './promotions/promotions.module.js'

@Module({
  imports: [
    SluiceModule.forRoot({
      redis: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
      autoStart: process.env.ROLE !== 'api', // false: this process runs no jobs
      defaults: { queue: { limits: { queue: '500/s' }, shutdownGraceMs: 20_000 }, middleware: [logJobs] },
    }),
    PromotionsModule,
    OperationsModule,
  ],
  controllers: [HealthController],
})
export class AppModule {}
