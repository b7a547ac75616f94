import { type DynamicModule, type InjectionToken, Module, type Provider } from '@nestjs/common'
import { DiscoveryModule, DiscoveryService, ModuleRef } from '@nestjs/core'
import type { Queue } from '../engine/queue.ts'
import { InvalidOptionsError } from '../errors.ts'
import { Sluice } from '../sluice.ts'
import { ConnectionLifecycle, WorkersLifecycle } from './lifecycle.ts'
import {
  type QueueOptionsFactory,
  type RegisteredQueueOptions,
  type RegisterQueueAsyncOptions,
  type RegisterQueueOptions,
  type SluiceModuleAsyncOptions,
  type SluiceModuleOptions,
  type SluiceOptionsFactory,
  sluiceOptionsOf,
} from './module-options.ts'
import { nestLog } from './nest-log.ts'
import { QueueRegistration } from './queue-registration.ts'
import { QueueRegistry } from './queue-registry.ts'
import { SluiceHealthIndicator } from './sluice-health-indicator.ts'
import { SluiceRegistrar } from './sluice-registrar.ts'
import { defaultConfigKey, getQueueToken, getSluiceToken, optionsToken } from './tokens.ts'

/** What there is once in an application, however many configurations and queues it has. */
class SluiceRegistryModule {}
Module({
  imports: [DiscoveryModule],
  providers: [
    { provide: QueueRegistry, inject: [DiscoveryService], useFactory: (discovery) => new QueueRegistry(discovery) },
    {
      provide: SluiceRegistrar,
      inject: [DiscoveryService, QueueRegistry],
      useFactory: (discovery, registry) => new SluiceRegistrar(discovery, registry),
    },
    { provide: SluiceHealthIndicator, inject: [ModuleRef], useFactory: (module) => new SluiceHealthIndicator(module) },
  ],
  exports: [QueueRegistry, SluiceRegistrar, SluiceHealthIndicator],
})(SluiceRegistryModule)

/** One Sluice, for all modules of the application. */
class SluiceConnectionModule {}

/** Sluice in a NestJS application: `forRoot` once, and `registerQueue` in every module that uses a queue. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of NestJS is a class.
export class SluiceModule {
  /** Connects, for the whole application. */
  static forRoot(options: SluiceModuleOptions): DynamicModule
  /** One of several: `registerQueue({ name, configKey })` and `@InjectSluice(configKey)` say which is meant. */
  static forRoot(configKey: string, options: SluiceModuleOptions): DynamicModule
  static forRoot(...args: [SluiceModuleOptions] | [string, SluiceModuleOptions]): DynamicModule {
    const [configKey, options] = keyed(args)
    return rootModule(configKey, [{ provide: optionsToken(configKey), useValue: options }], [])
  }

  /** The same with options that something else knows: `forRootAsync({ inject: [ConfigService], useFactory: … })`. */
  static forRootAsync(options: SluiceModuleAsyncOptions): DynamicModule
  static forRootAsync(configKey: string, options: SluiceModuleAsyncOptions): DynamicModule
  static forRootAsync(...args: [SluiceModuleAsyncOptions] | [string, SluiceModuleAsyncOptions]): DynamicModule {
    const [configKey, options] = keyed(args)
    const providers = asyncProviders<SluiceModuleOptions, SluiceOptionsFactory>(
      'SluiceModule.forRootAsync',
      optionsToken(configKey),
      options,
      (factory) => factory.createSluiceOptions(),
    )
    return rootModule(configKey, providers, options.imports ?? [])
  }

  /**
   * Makes queues known to the module that imports this, for `@InjectQueue` and `@Processor`. Where several modules use one
   * queue, one of them gives its options and the others its name alone.
   */
  static registerQueue(...queues: RegisterQueueOptions[]): DynamicModule {
    const registrations = queues.map(
      ({ name, configKey, ...options }) => new QueueRegistration({ name, configKey, options }),
    )
    return {
      module: SluiceModule,
      imports: [SluiceRegistryModule],
      providers: registrations.flatMap((each) => queueProviders(each, [])),
      exports: registrations.map(({ name }) => getQueueToken(name)),
    }
  }

  /** The same with options that something else knows. */
  static registerQueueAsync(...queues: RegisterQueueAsyncOptions[]): DynamicModule {
    return {
      module: SluiceModule,
      imports: [SluiceRegistryModule, ...queues.flatMap(({ imports }) => imports ?? [])],
      providers: queues.flatMap(asyncQueueProviders),
      exports: queues.map(({ name }) => getQueueToken(name)),
    }
  }
}
Module({})(SluiceModule)

function keyed<Options>(args: [Options] | [string, Options]): [configKey: string, options: Options] {
  return args.length === 1 ? [defaultConfigKey, args[0]] : args
}

function rootModule(
  configKey: string,
  options: Provider[],
  imports: NonNullable<DynamicModule['imports']>,
): DynamicModule {
  const [sluiceToken, token] = [getSluiceToken(configKey), optionsToken(configKey)]
  const connection: DynamicModule = {
    module: SluiceConnectionModule,
    global: true,
    imports: [SluiceRegistryModule, ...imports],
    providers: [
      ...options,
      { provide: sluiceToken, inject: [token], useFactory: makeSluice },
      { provide: ConnectionLifecycle, inject: [sluiceToken], useFactory: (sluice) => new ConnectionLifecycle(sluice) },
    ],
    exports: [token, sluiceToken, SluiceRegistryModule],
  }
  return {
    module: SluiceModule,
    imports: [connection],
    providers: [
      {
        provide: WorkersLifecycle,
        inject: [sluiceToken, token, SluiceRegistrar],
        useFactory: (sluice, given, registrar) =>
          new WorkersLifecycle({ sluice, options: given, configKey, registrar }),
      },
    ],
  }
}

function makeSluice(options: SluiceModuleOptions): Sluice {
  return new Sluice({ log: nestLog, ...sluiceOptionsOf(options) })
}

/** @param after - What must be made before the queue is. */
function queueProviders(registration: QueueRegistration, after: InjectionToken[]): Provider[] {
  const { name, configKey } = registration
  const wanted = [getSluiceToken(configKey), optionsToken(configKey)].map((token) => ({ token, optional: true }))
  return [
    { provide: Symbol(`registration of ${name}`), useValue: registration },
    {
      provide: getQueueToken(name),
      inject: [QueueRegistry, ...wanted, ...after],
      useFactory: (
        registry: QueueRegistry,
        sluice: Sluice | undefined,
        options: SluiceModuleOptions | undefined,
      ): Promise<Queue> => registry.queue(registration, { sluice, options }),
    },
  ]
}

function asyncQueueProviders(options: RegisterQueueAsyncOptions): Provider[] {
  const { name, configKey } = options
  const registration = new QueueRegistration({ name, configKey, options: undefined })
  const [maker, settled] = [Symbol(`maker of the options of ${name}`), Symbol(`settled options of ${name}`)]
  return [
    ...asyncProviders<() => RegisteredQueueOptions | Promise<RegisteredQueueOptions>, QueueOptionsFactory>(
      `SluiceModule.registerQueueAsync, queue "${name}"`,
      maker,
      laterOptions(options),
      (factory) => () => factory.createQueueOptions(name),
    ),
    {
      provide: settled,
      // The Sluice is there before the options are made, so that it is closed where that fails.
      inject: [QueueRegistry, maker, { token: getSluiceToken(registration.configKey), optional: true }],
      useFactory: async (registry: QueueRegistry, make: () => RegisteredQueueOptions) => {
        registry.settle(registration, await registry.orClose(make))
        return true
      },
    },
    ...queueProviders(registration, [settled]),
  ]
}

/** The same, with a factory that only says how the options are made. */
function laterOptions({ useFactory, ...rest }: RegisterQueueAsyncOptions) {
  if (!useFactory) return rest
  return {
    ...rest,
    useFactory:
      (...args: unknown[]) =>
      () =>
        useFactory(...args),
  }
}

/** Providers of options under a token, from whichever of the three ways is given. */
function asyncProviders<Options, Factory>(
  what: string,
  token: InjectionToken,
  options: Pick<SluiceModuleAsyncOptions, 'inject'> & {
    // biome-ignore lint/suspicious/noExplicitAny: what is injected is the caller's word.
    useFactory?: (...args: any[]) => Options | Promise<Options>
    useClass?: SluiceModuleAsyncOptions['useClass'] | RegisterQueueAsyncOptions['useClass']
    useExisting?: InjectionToken
  },
  make: (factory: Factory) => Options | Promise<Options>,
): Provider[] {
  const { useFactory, useClass, useExisting, inject = [] } = options
  const given = [useFactory, useClass, useExisting].filter((each) => each !== undefined)
  if (given.length !== 1) {
    throw new InvalidOptionsError(what, [
      { path: 'one of useFactory, useClass and useExisting', problem: 'must be given, and only one' },
    ])
  }
  if (useFactory) return [{ provide: token, inject, useFactory }]
  if (useExisting) return [{ provide: token, inject: [useExisting], useFactory: make }]
  const owner = Symbol(`factory of ${String(token)}`)
  return [
    { provide: owner, useClass: useClass as NonNullable<typeof useClass> },
    { provide: token, inject: [owner], useFactory: make },
  ]
}
