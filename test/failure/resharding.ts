import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { TestCluster } from '../support/cluster.ts'
import { now } from '../support/history.ts'
import type { Scenario } from './scenario.ts'

/** In the slot of the queue that scenarios use. */
export const KEY = '{calls}'
// Between two keys: long enough for calls to meet the slot in two places.
const PAUSE_MS = 5
// Between two moves, so that work is done at every place.
const STAY_MS = 1_500

/** Moves the queue's slot that many times, each time to the next master. */
export async function moveAround(cluster: TestCluster, times: number, signal?: AbortSignal): Promise<void> {
  for (let move = 0; move < times && !signal?.aborted; move++) {
    const masters = await cluster.masters()
    const at = masters.indexOf(await cluster.masterOf(KEY))
    await cluster.moveSlot(KEY, masters[(at + 1) % masters.length] as TestRedis, PAUSE_MS)
    await new Promise((resolve) => setTimeout(resolve, STAY_MS))
  }
}

/** Kills the node that has the queue. */
export async function losesMaster(
  scenario: Scenario,
  cluster: TestCluster,
): Promise<{ at: number; afterUs: number; fault: { end(): void } }> {
  const master = await cluster.masterOf(KEY)
  const [at, afterUs] = [now(), Date.now() * 1_000]
  const fault = scenario.fault('failover')
  await master.kill('SIGKILL')
  return { at, afterUs, fault }
}
