import type { TestRedis } from '../../src/testing/redis-server.ts'
import { now } from '../support/history.ts'
import type { TestSentinels } from '../support/sentinels.ts'
import { until } from '../support/until.ts'
import type { Scenario, Worker } from './scenario.ts'

/** What the fault is called in histories: what came shortly before it may be forgotten. */
const FAULT = 'failover'
// For so long nothing reaches the replicas before the master is lost: what it acknowledges alone is lost with it.
const LAG_MS = 150

export interface Failover {
  /** On the clock of the history. */
  readonly at: number
  /** From the loss of the master to the first job that was claimed from the next one. */
  readonly resumedMs: number
}

/**
 * Takes the master away, by a kill or by stopping it, at a moment when its replicas lag, and waits until another serves.
 * A hung one goes on afterwards, as if nothing had happened: nobody may believe it.
 */
export async function loseMaster(
  scenario: Scenario,
  sentinels: TestSentinels,
  workers: readonly Worker[],
  how: 'dead' | 'hung',
): Promise<Failover> {
  const master = await sentinels.master()
  const replicas = sentinels.servers.filter((server) => server !== master)
  for (const replica of replicas) await replica.kill('SIGSTOP')
  await new Promise((resolve) => setTimeout(resolve, LAG_MS))
  const at = now()
  const wallUs = Date.now() * 1_000
  const fault = scenario.fault(FAULT)
  await master.kill(how === 'dead' ? 'SIGKILL' : 'SIGSTOP')
  for (const replica of replicas) await replica.kill('SIGCONT')
  const resumedMs = await resumed(workers, wallUs, at)
  if (how === 'hung') await wakeUp(sentinels, master)
  fault.end()
  return { at, resumedMs }
}

/** Fences are the server's time in µs: one that is later than the fault was given by whoever took over. */
export async function resumed(workers: readonly Worker[], afterUs: number, since: number): Promise<number> {
  const seen = new Map<Worker, number>()
  await until(
    'a job of the next master is started',
    async () =>
      workers.some((worker) => {
        const { messages } = worker
        const from = seen.get(worker) ?? 0
        seen.set(worker, messages.length)
        return messages.slice(from).some((message) => message.is === 'started' && Number(message.fence) > afterUs)
      }),
    30_000,
  )
  return now() - since
}

/** The old master comes back before anybody told it that it is none any more. */
async function wakeUp(sentinels: TestSentinels, master: TestRedis): Promise<void> {
  await sentinels.failedOver(master)
  await master.kill('SIGCONT')
}
