import { readdirSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { startCluster } from '../support/cluster.ts'
import { runScriptTestsOn, ScriptStore } from '../support/script-store/script-store.ts'

// Every script has a test of its own beside it; here all of them run once more, on a Cluster of three real nodes. Where the
// rules of sharing are tried over thousands of claims, nodes make no difference, and each claim takes longer.
const folder = new URL('../../src/store/scripts/', import.meta.url)
const leftOut = /^(all-scripts|finish-and-claim-(rounds|shares|costs))\.test\.ts$/
const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts') && !leftOut.test(file))

const cluster = await startCluster({ replicas: 0 })
runScriptTestsOn(await cluster.masterOf('{q}'), cluster.redis)
afterAll(() => cluster.stop())

it('is one of three nodes that the scripts run on', async () => {
  const store = new ScriptStore()

  await store.start()

  expect(cluster.nodes).toContain(store.server)
  expect(cluster.nodes).toHaveLength(3)

  await store.stop()
})

describe.each(files)('on a Cluster: %s', async (file) => {
  await import(new URL(file, folder).href)
})
