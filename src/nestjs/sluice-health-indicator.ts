import type { ModuleRef } from '@nestjs/core'
import { type Sluice, storeOf } from '../sluice.ts'
import { pingEach } from '../store/ping.ts'
import { getSluiceToken } from './tokens.ts'

/** As @nestjs/terminus wants it: by the key, whether it is up, and what else there is to say. */
export type SluiceHealth<Key extends string> = Record<
  Key,
  { status: 'up'; latencyMs: number } | { status: 'down'; message: string }
>

export interface HealthOptions {
  /**
   * Redis is down when it has not answered by then.
   * @default 1_000
   */
  timeoutMs?: number
  /** Where the application has several. */
  configKey?: string
}

/** Says whether Redis answers. For `HealthCheckService.check` of @nestjs/terminus, or for a route of your own. */
export class SluiceHealthIndicator {
  readonly #module: ModuleRef

  /** Made by `SluiceModule`. */
  constructor(module: ModuleRef) {
    this.#module = module
  }

  /** Never rejects: that it is down is an answer. */
  async isHealthy<Key extends string = 'sluice'>(
    key: Key = 'sluice' as Key,
    { timeoutMs = 1_000, configKey }: HealthOptions = {},
  ): Promise<SluiceHealth<Key>> {
    const start = performance.now()
    try {
      await this.#ping(timeoutMs, configKey)
      return { [key]: { status: 'up', latencyMs: Math.round(performance.now() - start) } } as SluiceHealth<Key>
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      return { [key]: { status: 'down', message } } as SluiceHealth<Key>
    }
  }

  async #ping(timeoutMs: number, configKey: string | undefined): Promise<void> {
    const sluice = this.#module.get<Sluice>(getSluiceToken(configKey) as string, { strict: false })
    await pingEach(storeOf(sluice).redis, timeoutMs)
  }
}
