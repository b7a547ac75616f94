import { ContextIdFactory, type DiscoveryService, ModuleRef } from '@nestjs/core'

/** As NestJS holds it. */
export type Provider = ReturnType<DiscoveryService['getProviders']>[number]

/** Calls one method of a provider. */
export type Call = (subject: unknown, context?: unknown) => unknown

type Methods = Record<string | symbol, Call>

/** It, or something it injects, is request-scoped: it is made anew for each job. */
export function isPerJob(provider: Provider): boolean {
  return !provider.isDependencyTreeStatic()
}

export function callOf(provider: Provider, key: string | symbol): Call {
  // Asked for with each call, so that a spy put on the instance is what is called.
  if (!isPerJob(provider)) return (subject, context) => (provider.instance as Methods)[key]?.(subject, context)
  return async (subject, context) => {
    const module = provider.host?.getProviderByKey<ModuleRef>(ModuleRef).instance as ModuleRef
    const contextId = ContextIdFactory.create()
    module.registerRequestByContextId(subject, contextId)
    const instance = await module.resolve<Methods>(provider.token as string, contextId)
    return instance[key]?.(subject, context)
  }
}
