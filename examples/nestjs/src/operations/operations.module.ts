import { Module } from '@nestjs/common'
import { SluiceModule } from 'sluice/nestjs'
import { MetricsController } from './metrics.controller.js'
import { OperationsController } from './operations.controller.js'
import { WorkerServer } from './worker-server.js'

@Module({
  imports: [SluiceModule.registerQueue({ name: 'promotions' })],
  controllers: [OperationsController, MetricsController],
  providers: [WorkerServer],
})
export class OperationsModule {}
