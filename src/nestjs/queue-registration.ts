import type { RegisteredQueueOptions } from './module-options.ts'
import { defaultConfigKey } from './tokens.ts'

const brand = Symbol.for('sluice.nestjs.registration')

/**
 * One `registerQueue` of a module, as it stands in the code. It is made once for the code and may serve several applications
 * of one process, as tests have them; so it holds nothing of any of them.
 */
export class QueueRegistration {
  readonly [brand] = true
  readonly name: string
  readonly configKey: string
  /** Undefined: a factory makes them. */
  readonly options: RegisteredQueueOptions | undefined

  constructor(parts: { name: string; configKey: string | undefined; options: RegisteredQueueOptions | undefined }) {
    this.name = parts.name
    this.configKey = parts.configKey ?? defaultConfigKey
    this.options = parts.options
  }

  /** It says how the queue is, now or through a factory, and not only that it is wanted here. */
  get hasOptions(): boolean {
    return this.options === undefined || Object.values(this.options).some((value) => value !== undefined)
  }
}

export function isRegistration(value: unknown): value is QueueRegistration {
  return typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === true
}
