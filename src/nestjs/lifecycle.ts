import type {
  BeforeApplicationShutdown,
  OnApplicationBootstrap,
  OnApplicationShutdown,
  OnModuleDestroy,
} from '@nestjs/common'
import { isSluiceError } from '../errors.ts'
import { Sluice } from '../sluice.ts'
import type { SluiceModuleOptions } from './module-options.ts'
import { logger } from './nest-log.ts'
import { abandon, listen, type SluiceRegistrar } from './sluice-registrar.ts'

/**
 * Starts the workers when all modules are initialised, and drains them when the application ends. NestJS ends modules the
 * other way round from how they depend on each other, global ones last. This one is not global, so that jobs still have
 * the services they use while they end.
 */
export class WorkersLifecycle implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown {
  readonly #parts: { sluice: Sluice; options: SluiceModuleOptions; configKey: string; registrar: SluiceRegistrar }
  #stopping: Promise<void> | undefined

  constructor(parts: { sluice: Sluice; options: SluiceModuleOptions; configKey: string; registrar: SluiceRegistrar }) {
    this.#parts = parts
  }

  async onApplicationBootstrap(): Promise<void> {
    const { sluice, options, configKey, registrar } = this.#parts
    try {
      registrar.check()
      const isAway = !(await isUsable(sluice))
      // Whoever runs no jobs is told of those that others run.
      await listen(registrar, configKey, { isAway })
      if (options.autoStart !== false) await registrar.register(configKey)
    } catch (error) {
      await abandon(registrar)
      throw error
    }
  }

  onModuleDestroy(): Promise<void> {
    return this.#stop()
  }

  /** Where the application failed before its modules were destroyed one by one. */
  beforeApplicationShutdown(): Promise<void> {
    return this.#stop()
  }

  #stop(): Promise<void> {
    this.#stopping ??= this.#parts.registrar.stop()
    return this.#stopping
  }
}

/** Disconnects last: until the HTTP server is closed, requests may submit jobs. */
export class ConnectionLifecycle implements OnApplicationShutdown {
  readonly #sluice: Sluice

  constructor(sluice: Sluice) {
    this.#sluice = sluice
  }

  onApplicationShutdown(): Promise<void> {
    return close(this.#sluice)
  }
}

/**
 * A Redis that must not be used is a reason not to start, and throws; one that is away for a while comes back by itself:
 * false then.
 */
async function isUsable(sluice: Sluice): Promise<boolean> {
  if (!(sluice instanceof Sluice)) return true
  try {
    await sluice.ready()
    return true
  } catch (error) {
    if (!isSluiceError(error) || error.code !== 'SLUICE_STORE_UNAVAILABLE') throw error
    logger.warn(`${error.message} The application starts all the same, and works when Redis does.`)
    return false
  }
}

/** A test may have put something else in its place. */
async function close(sluice: Sluice): Promise<void> {
  if (sluice instanceof Sluice) await sluice.close()
}
