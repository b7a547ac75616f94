export {
  type EventDecorator,
  OnQueueEvent,
  Process,
  type ProcessDecorator,
  type ProcessMethodOptions,
  Processor,
  type ProcessorOptions,
  QueueEventsListener,
} from './decorators.ts'
export type {
  QueueOptionsFactory,
  RegisteredQueueOptions,
  RegisterQueueAsyncOptions,
  RegisterQueueOptions,
  SluiceModuleAsyncOptions,
  SluiceModuleOptions,
  SluiceOptionsFactory,
} from './module-options.ts'
export { type HealthOptions, type SluiceHealth, SluiceHealthIndicator } from './sluice-health-indicator.ts'
export { SluiceModule } from './sluice-module.ts'
export { SluiceRegistrar } from './sluice-registrar.ts'
export { getQueueToken, getSluiceToken, InjectQueue, InjectSluice } from './tokens.ts'
