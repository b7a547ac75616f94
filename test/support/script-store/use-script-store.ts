import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import type { QueueOptions } from '../../../src/engine/queue-options.ts'
import { ScriptStore } from './script-store.ts'

/**
 * The store of a test file, on a server that only it uses from the first test to the last. Each test begins with a
 * registered queue that holds nothing, and fails if a script met a key too late.
 * @param options - Of the queue.
 */
export function useScriptStore(options: QueueOptions = {}): ScriptStore {
  const store = new ScriptStore()
  beforeAll(() => store.start())
  beforeEach(() => store.begin(options))
  afterEach(async () => expect(await store.keysMetTooLate()).toEqual([]))
  afterAll(() => store.stop())
  return store
}
