import type { SluiceConfig } from '../config/define-config.ts'
import { definedOnly } from '../defined-only.ts'
import { loadConfig } from './config.ts'

/** Where the command line says that the store is. */
export interface StoreOptions {
  readonly config?: string
  readonly redis?: string
  readonly data?: string
  readonly prefix?: string
}

/** A config that names its store. */
export type StoreConfig = SluiceConfig & Required<Pick<SluiceConfig, 'redis'>>

/** The config file with the store that the command line names. */
export async function readStoreConfig(options: StoreOptions): Promise<StoreConfig> {
  const { config } = await loadConfig(process.cwd(), options.config)
  return withStoreOf(config, options)
}

/** The same of a file that has been read. The command line goes before it; where neither says anything it is embedded. */
export function withStoreOf(config: SluiceConfig, { redis, data, prefix }: StoreOptions): StoreConfig {
  return {
    ...config,
    redis: redis ?? config.redis ?? 'embedded',
    ...definedOnly({ dataDir: data, prefix }),
  }
}
