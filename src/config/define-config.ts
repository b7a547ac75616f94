import type { HttpRequestOptions } from '../bulk/http-request/options.ts'
import type { Handler } from '../engine/job-run.ts'
import type { QueueOptions } from '../engine/queue-options.ts'
import type { ScheduleInput } from '../engine/schedules/schedule-input.ts'
import type { ApiKey } from '../http/api-keys.ts'
import type { LimitDefinition } from '../limits/definition.ts'
import type { LimitOptions, SluiceOptions } from '../sluice.ts'

/** A queue as `sluice serve` and `sluice worker` have it. */
export interface ServedQueue extends QueueOptions {
  /** Jobs that one process runs at once: more than `queue.process` has by itself, as these mostly wait for HTTP. @default 20 */
  concurrency?: number
  /** What the built-in processor `http.request` may call. Without it the queue performs no HTTP calls by itself. */
  http?: HttpRequestOptions
  /** Names of limits of the config file that its jobs need beside its own, and that other queues use up as well. */
  shares?: readonly string[]
  /**
   * Repeating jobs, by name. They are made, and changed to what the file says, when a process starts; one that is taken out of
   * the file goes on until `sluice schedules rm`.
   */
  schedules?: Readonly<Record<string, ScheduleInput>>
  /** Handlers of your own, by the type of their jobs. */
  processors?: Readonly<Record<string, Handler>>
}

/** What `sluice.config.ts` exports. Everything has a default: without a file there is an embedded store. */
export interface SluiceConfig extends Partial<Omit<SluiceOptions, 'clock'>> {
  /** Where the server listens. Anything but loopback needs keys. @default '127.0.0.1' */
  host?: string
  /** @default 7717 */
  port?: number
  /** Who may use the API; `sluice keys create` makes the entries. */
  keys?: readonly ApiKey[]
  /** Budgets that several queues share, by name; a queue names those it needs in `shares`. */
  limits?: Readonly<Record<string, LimitDefinition | ConfiguredLimit>>
  queues?: Readonly<Record<string, ServedQueue>>
}

/** A shared limit with its group: limits that one queue needs must have the same. */
export interface ConfiguredLimit extends LimitOptions {
  readonly limit: LimitDefinition
}

/** Gives a config file its types; answers what it was given. */
export function defineConfig(config: SluiceConfig): SluiceConfig {
  return config
}
