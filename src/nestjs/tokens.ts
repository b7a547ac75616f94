import { Inject, type InjectionToken } from '@nestjs/common'
import { Sluice } from '../sluice.ts'

/** What a configuration is called that is given no key. */
export const defaultConfigKey = 'default'

/** Under which the Sluice of a configuration is provided: the class itself, unless the configuration has a key. */
export function getSluiceToken(configKey: string = defaultConfigKey): InjectionToken<Sluice> {
  return configKey === defaultConfigKey ? Sluice : `Sluice_${configKey}`
}

/** Under which the options of a configuration are provided. */
export function optionsToken(configKey: string): string {
  return `SluiceModuleOptions_${configKey}`
}

export function isOptionsToken(token: unknown): token is string {
  return typeof token === 'string' && token.startsWith(optionsToken(''))
}

/** Under which a queue is provided: for `overrideProvider` in tests, and for `inject` of factories. */
export function getQueueToken(name: string): string {
  return `SluiceQueue_${name}`
}

/** Injects the Sluice itself, for what is not about one queue; `configKey` where there are several. */
export function InjectSluice(configKey?: string): PropertyDecorator & ParameterDecorator {
  return Inject(getSluiceToken(configKey))
}

/** Injects a queue that `SluiceModule.registerQueue` has registered. */
export function InjectQueue(name: string): PropertyDecorator & ParameterDecorator {
  return Inject(getQueueToken(name))
}
