import type { InjectionToken, ModuleMetadata, OptionalFactoryDependency, Type } from '@nestjs/common'
import { boolean, checkOptions, group, type Rule } from '../assert.ts'
import type { Middleware } from '../engine/queue.ts'
import { type ProcessOptions, processRules, type QueueOptions } from '../engine/queue-options.ts'
import { type SluiceOptions, sluiceRules } from '../sluice.ts'

/** Options of `SluiceModule.forRoot`: those of `new Sluice`, and how the application uses it. */
export interface SluiceModuleOptions extends SluiceOptions {
  /** What holds for every queue that does not say otherwise. */
  defaults?: {
    /** Merged by section: a queue that gives `limits.tenant` keeps the `limits.queue` and the `congestion` from here. */
    queue?: QueueOptions
    /** For every `@Processor`. */
    process?: ProcessOptions
    /** Around the handlers of every queue; that of a queue itself comes inside of it. */
    middleware?: readonly Middleware[]
  }
  /**
   * Run jobs from when all modules are initialised. False for processes that only submit, or that start later with
   * `SluiceRegistrar.register`; listeners of events are told all the same.
   * @default true
   */
  autoStart?: boolean
}

/** Checked where it is used, with the options it is merged with. */
const asGiven: Rule<unknown> = (value) => value
const processDefaults: Rule<unknown> = group(processRules)

const sluiceModuleRules = {
  ...sluiceRules,
  defaults: group({ queue: asGiven, process: processDefaults, middleware: asGiven }),
  autoStart: boolean({ default: true }),
}

/** Throws an InvalidOptionsError with all that is wrong; answers the part that is for `new Sluice`. */
export function sluiceOptionsOf(options: SluiceModuleOptions): SluiceOptions {
  checkOptions('SluiceModule.forRoot', options, sluiceModuleRules)
  const { defaults: _, autoStart: __, ...rest } = options
  return rest
}

/** How a queue is registered: its options, and what runs around its handlers. */
export interface RegisteredQueueOptions extends QueueOptions {
  /** Around its handlers, the first outermost. */
  middleware?: readonly Middleware[]
}

/** What `SluiceModule.registerQueue` takes. With a name alone, the options are those given elsewhere, or the defaults. */
export interface RegisterQueueOptions extends RegisteredQueueOptions {
  name: string
  /** Which Sluice it is a queue of, where the application has several. */
  configKey?: string
}

/** One of these three makes the options; `inject` and `imports` are what it needs for that. */
interface AsyncOptions<Options, Factory> extends Pick<ModuleMetadata, 'imports'> {
  // biome-ignore lint/suspicious/noExplicitAny: what is injected is the caller's word, as everywhere in NestJS.
  useFactory?: (...args: any[]) => Options | Promise<Options>
  inject?: (InjectionToken | OptionalFactoryDependency)[]
  /** A class of which one is made for this. */
  useClass?: Type<Factory>
  /** A provider that is there already. */
  useExisting?: InjectionToken<Factory>
}

/** For `forRootAsync({ useClass })`. */
export interface SluiceOptionsFactory {
  createSluiceOptions(): SluiceModuleOptions | Promise<SluiceModuleOptions>
}

export interface SluiceModuleAsyncOptions extends AsyncOptions<SluiceModuleOptions, SluiceOptionsFactory> {}

/** For `registerQueueAsync({ useClass })`. */
export interface QueueOptionsFactory {
  createQueueOptions(name: string): RegisteredQueueOptions | Promise<RegisteredQueueOptions>
}

export interface RegisterQueueAsyncOptions extends AsyncOptions<RegisteredQueueOptions, QueueOptionsFactory> {
  name: string
  /** Which Sluice it is a queue of, where the application has several. */
  configKey?: string
}
