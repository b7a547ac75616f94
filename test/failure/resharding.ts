import type { TestRedis } from '../../src/testing/redis-server.ts'
import type { TestCluster } from '../support/cluster.ts'
import { now } from '../support/history.ts'
import { justAfterUs } from './failover.ts'
import type { Trial } from './trial.ts'

/** In the slot of the queue that trials use. */
export const KEY = '{calls}'
/**
 * Moves the queue's slot that many times, each time to the next master.
 * @param pace - Between two keys: long enough for calls to meet the slot in two places. Between two moves: so that work is
 *   done at every place, also under limits, which are closed for a window after each.
 */
export async function moveAround(
  cluster: TestCluster,
  times: number,
  pace: { betweenKeysMs: number; betweenMovesMs: number } = { betweenKeysMs: 5, betweenMovesMs: 1_500 },
): Promise<void> {
  for (let move = 0; move < times; move++) {
    const masters = await cluster.masters()
    const at = masters.indexOf(await cluster.masterOf(KEY))
    await cluster.moveSlot(KEY, masters[(at + 1) % masters.length] as TestRedis, pace.betweenKeysMs)
    await new Promise((resolve) => setTimeout(resolve, pace.betweenMovesMs))
  }
}

/** Kills the node that has the queue. */
export async function losesMaster(
  trial: Trial,
  cluster: TestCluster,
): Promise<{ at: number; afterUs: number; fault: { end(): void }; master: TestRedis }> {
  const master = await cluster.masterOf(KEY)
  const at = now()
  const fault = trial.fault('failover')
  await master.kill('SIGKILL')
  return { at, afterUs: justAfterUs(), fault, master }
}
