import type { LimitDefinition } from '../../../src/limits/definition.ts'
import { parseLimit } from '../../../src/limits/definition.ts'
import type { Shared } from '../../../src/limits/shared.ts'
import type { ScriptStore } from './script-store.ts'

/** A limit of the group `gitlab`, as a script test attaches it. */
export function sharedLimit(definition: LimitDefinition, name = 'gitlab'): Shared {
  return { kind: 'shared', name, group: 'gitlab', rule: parseLimit(name, definition), ready: async () => {} }
}

/** Starts over with queues under one limit of the group `gitlab`, each with jobs of one tenant of the queue's name. */
export async function beginGroup(
  store: ScriptStore,
  definition: LimitDefinition,
  queues: Readonly<Record<string, number>>,
): Promise<void> {
  await store.empty()
  store.group = 'gitlab'
  for (const [queue, jobs] of Object.entries(queues)) {
    store.use(queue)
    await store.register({ limits: { upstream: sharedLimit(definition) } })
    await store.submit(queue, jobs)
  }
}
