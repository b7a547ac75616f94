import type { TestRedis } from '../../src/testing/redis-server.ts'
import { describeViolations, type Violation } from '../support/checker.ts'
import { type HistoryEvent, now } from '../support/history.ts'
import type { TestSentinels } from '../support/sentinels.ts'
import { until } from '../support/until.ts'
import type { Trial } from './trial.ts'
import type { Worker } from './worker.ts'

/** What the fault is called in histories: what came shortly before it may be forgotten. */
const FAULT = 'failover'
// For so long nothing reaches the replicas before the master is lost: what it acknowledges alone is lost with it.
const LAG_MS = 150
// No other serves before the lost one is held for dead: what is told to be accepted sooner was on its way by then.
const ON_ITS_WAY_MS = 1_000

export interface Failover {
  /** When the master could acknowledge nothing more, on the clock of the history. */
  readonly goneAt: number
  /** From the loss of the master to the first job that was claimed from the next one. */
  readonly resumedMs: number
}

/**
 * Takes the master away, by a kill or by stopping it, at a moment when its replicas lag, and waits until another serves.
 * A hung one goes on afterwards, as if nothing had happened: nobody may believe it.
 */
export async function loseMaster(
  trial: Trial,
  sentinels: TestSentinels,
  workers: readonly Worker[],
  how: 'dead' | 'hung',
): Promise<Failover> {
  const master = await sentinels.master()
  const replicas = sentinels.servers.filter((server) => server !== master)
  for (const replica of replicas) await replica.kill('SIGSTOP')
  // What the kernel holds for a stopped replica would reach it all the same.
  await master.client().call('CLIENT', 'KILL', 'TYPE', 'replica')
  await new Promise((resolve) => setTimeout(resolve, LAG_MS))
  const at = now()
  const fault = trial.fault(FAULT)
  await master.kill(how === 'dead' ? 'SIGKILL' : 'SIGSTOP')
  const [goneAt, afterUs] = [now(), justAfterUs()]
  for (const replica of replicas) await replica.kill('SIGCONT')
  const resumedMs = await resumed(workers, afterUs, at)
  if (how === 'hung') await wakeUp(sentinels, master)
  fault.end()
  return { goneAt, resumedMs }
}

/** The first instant after this moment that a fence can have: the clock that is read here cuts it to the millisecond. */
export function justAfterUs(): number {
  return (Date.now() + 1) * 1_000
}

/** Fences are the server's time in µs: one that is later than the fault was given by whoever took over. */
export async function resumed(workers: readonly Worker[], afterUs: number, since: number): Promise<number> {
  const seen = new Map<Worker, number>()
  await until(
    async () =>
      workers.some((worker) => {
        const { messages } = worker
        const from = seen.get(worker) ?? 0
        seen.set(worker, messages.length)
        return messages.slice(from).some((message) => message.is === 'started' && Number(message.fence) > afterUs)
      }),
    { what: 'a job of the next master is started', timeoutMs: 30_000 },
  )
  return now() - since
}

/** The old master comes back before anybody told it that it is none any more. */
async function wakeUp(sentinels: TestSentinels, master: TestRedis): Promise<void> {
  await sentinels.failedOver(master)
  await master.kill('SIGCONT')
}

export interface LostJob {
  readonly job: string
  /** How long before its failover it was accepted; infinite where none came after that. */
  readonly ageMs: number
}

/** Jobs that were accepted and never ended, as the checker found them. */
export function lostJobs(
  history: readonly HistoryEvent[],
  violations: readonly Violation[],
  failovers: readonly Failover[],
): LostJob[] {
  const answers = new Map(
    history.flatMap((event) =>
      event.kind === 'submit' && event.phase === 'ok' ? [[`${event.process} ${event.call}`, event.at] as const] : [],
    ),
  )
  return violations.flatMap(({ check, job = '', events }) => {
    if (check !== 'C1') return []
    const accepted = events.flatMap((event) =>
      event.kind === 'submit' ? (answers.get(`${event.process} ${event.call}`) ?? []) : [],
    )
    // One that was begun before its acceptance could be told, and forgotten with it, was promised to nobody.
    if (accepted.length === 0) return []
    const at = Math.min(...accepted)
    const next = failovers.find(({ goneAt }) => goneAt + ON_ITS_WAY_MS >= at)
    return { job, ageMs: next ? Math.max(0, next.goneAt - at) : Number.POSITIVE_INFINITY }
  })
}

/** What breaks a promise although no acceptance was lost; counts go by jobs, so they differ by those that were. */
export function brokenBeside(violations: readonly Violation[]): Violation[] {
  const names = new Set(violations.flatMap(({ check, job }) => (check === 'C1' && job !== undefined ? [job] : [])))
  return violations.filter(
    ({ check, job }) => check !== 'C1' && !(check === 'C13' && names.size > 0) && !names.has(job ?? ''),
  )
}

/** Nothing that was accepted is lost, and no other promise broken, after masters were. */
export async function expectAcceptedKept(trial: Trial): Promise<void> {
  const { history, violations } = await trial.check({ forgetsMs: 1_000 })
  const lost = new Set(lostJobs(history, violations, []).map(({ job }) => job))
  const broken = [
    ...violations.filter(({ check, job = '' }) => check === 'C1' && lost.has(job)),
    ...brokenBeside(violations),
  ]
  if (broken.length > 0) throw new Error(describeViolations(broken))
}
