import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { httpRequest } from '../../bulk/http-request/http-request.ts'
import type {
  Action,
  ActionSummary,
  ActionView,
  BucketDefinition,
  Handler,
  HttpRequestPayload,
  Queue,
} from '../../index.ts'
import { parseLimit } from '../../limits/definition.ts'
import { Sluice } from '../../sluice.ts'
import type { LimitRule } from '../../store/settings.ts'
import type { Output } from '../output.ts'
import { type Progress, ProgressBars } from '../progress-bar.ts'
import { type CallsFile, readCalls } from './calls-file.ts'

export interface RunSettings {
  readonly rate: string
  readonly concurrency: number
  readonly dataDir: string
  readonly allowPrivate: readonly string[]
  readonly timeoutMs: number
  readonly maxRetries: number
  /** A file that has been performed is performed once more. */
  readonly again: boolean
}

/** All calls of all files are of one tenant: nobody shares a run. */
const TENANT = 'run'
const day = 86_400_000
/** After a kill −9 the calls that were in flight are made again when their lease is over: a short wait at a resume. */
const LEASE_MS = 5_000
/** Calls in flight at Ctrl-C are seen to their end if they take no longer than this. */
const GRACE_MS = 10_000
/** Within this a run can be resumed, and a finished one is known to be finished. */
const KEEP_MS = 30 * day

/** Between so many lines of the file whatever else is due gets its turn: a permit that waits for the reader is lost. */
const READ_AT_ONCE = 10
/**
 * While all code is slow, which it is for so many lines, the file is read gently: with this much time between, or less where
 * calls would wait for it.
 */
const READ_GENTLY = 5_000
const GENTLE_MS = 5

/**
 * Submitted before the first is claimed, and the rest when that one has ended, or has taken this long: at the start all code
 * is slow, and permits would be lost while the file is read.
 */
const SUBMITTED_FIRST = 200
const FIRST_CALL_MS = 200

/** How it stands when `performCalls` comes back: ended, or interrupted. */
export interface RunEnd {
  readonly action: Action
  readonly view: ActionView
  /** Undefined when it was interrupted. */
  readonly summary: ActionSummary | undefined
  /** Calls that an earlier start had performed already. */
  readonly doneBefore: number
}

/**
 * Performs the calls of a file under a limit, on a private store in `dataDir`. The work is an action named after the
 * file: the same file again goes on where it ended, whether by Ctrl-C or kill −9, and what is finished stays finished.
 */
export async function performCalls<Result>(
  file: CallsFile,
  settings: RunSettings,
  shell: { output: Output; signal: AbortSignal },
  use: (end: RunEnd) => Promise<Result>,
): Promise<Result> {
  const { concurrency, timeoutMs } = settings
  const handler = httpRequest({
    allowHosts: [...file.hosts],
    allowPrivate: settings.allowPrivate,
    timeoutMs,
    maxConnections: concurrency,
  })
  const sluice = new Sluice({ redis: 'embedded', dataDir: settings.dataDir })
  try {
    const queue = openQueue(sluice, file, settings)
    const action = await findAction(queue, file, settings)
    const before = await action.view()
    const isComplete = before?.isSealed === true
    // Hands that find something at once need not be woken.
    if (!isComplete) await submitFirst(queue, action, file)
    const firstEnd = new Promise<void>((resolve) => {
      const perform: Handler<HttpRequestPayload> = (job, context) => handler(job, context).finally(resolve)
      queue.process('http.request', perform, { concurrency })
    })
    if (!isComplete) {
      await Promise.race([firstEnd, sleep(FIRST_CALL_MS)])
      await submitRest(action, file, shell, readPauseMs(settings.rate))
    }
    const end = await follow(queue, action, file, shell)
    return await use({ ...end, doneBefore: doneOf(before) })
  } finally {
    await sluice.close()
    handler.close()
  }
}

/** Between `READ_AT_ONCE` lines; four times as many are read as can be called. */
function readPauseMs(rate: string): number {
  const { count, window } = bucketRule(rate)
  return Math.min(GENTLE_MS, (READ_AT_ONCE * window) / 1_000 / (count * 4))
}

/** A queue for each file: the rate of one run is no matter of another's. */
function openQueue(sluice: Sluice, file: CallsFile, { rate, timeoutMs, maxRetries }: RunSettings): Queue {
  return sluice.queue(`run-${file.digest}`, {
    limits: { queue: bucketOf(rate, file) },
    maxRetries,
    // The processor's own time-out says more: it comes first. Waiting for a permit may take as long as it takes.
    jobTimeoutMs: Math.min(day, timeoutMs + 3_600_000),
    leaseMs: LEASE_MS,
    shutdownGraceMs: GRACE_MS,
    keepIdsMs: KEEP_MS,
    keepDeadLettersMs: KEEP_MS,
    keepActionsMs: KEEP_MS,
  })
}

/**
 * A run shares its machine with whatever else its user does. Permits that a process did not fetch while it stood still are
 * lost beyond a burst, so this has a larger one than usual: 20 ms of a limit per second, for 1 % of the rate. The way to this
 * machine itself varies less than one through a network, so that less of the rate is kept back for it: 20 ms of jitter, and a
 * burst of 16 ms, with which 5,000 calls at 500/s take less than 11.2 s. Grants that come too late all the same are returned,
 * and raise the jitter.
 */
export function bucketOf(rate: string, { isLocal }: Pick<CallsFile, 'isLocal'>): BucketDefinition {
  const { count: limit, window } = bucketRule(rate)
  const chosen = isLocal ? { burst: Math.ceil(limit * 0.016), jitterMs: 20 } : { burst: Math.ceil(limit * 0.02) }
  return { kind: 'bucket', limit, windowMs: window / 1_000, ...chosen }
}

function bucketRule(rate: string): LimitRule & { kind: 'bucket' } {
  return parseLimit('rate', rate) as LimitRule & { kind: 'bucket' }
}

/** The last action of the file: `1`, or `2` when it was asked for once more, and so on. */
async function findAction(queue: Queue, { digest }: CallsFile, { again }: RunSettings): Promise<Action> {
  for (let round = 1; ; round++) {
    const action = queue.action(`${digest}-${round}`, { tenant: TENANT })
    const next = queue.action(`${digest}-${round + 1}`, { tenant: TENANT })
    if ((await next.view()) !== undefined) continue
    return again && isEnded(await action.view()) ? next : action
  }
}

function isEnded(view: ActionView | undefined): boolean {
  return view?.endedAt !== undefined
}

function doneOf(view: ActionView | undefined): number {
  return view === undefined ? 0 : view.counts.succeeded + view.counts.failed
}

/** Enough for the first moments. What an earlier start has submitted is passed over. */
async function submitFirst(queue: Queue, { name }: Action, file: CallsFile): Promise<void> {
  await queue.submit({
    action: name,
    tenant: TENANT,
    type: 'http.request',
    jobs: firstOf(readCalls(file.path), SUBMITTED_FIRST),
    from: 'accepted',
    keepResults: true,
    seal: false,
  })
}

async function submitRest(
  action: Action,
  file: CallsFile,
  { output, signal }: { output: Output; signal: AbortSignal },
  pauseMs: number,
): Promise<void> {
  const bars = new ProgressBars(output)
  let read = 0
  async function* jobs() {
    for await (const call of readCalls(file.path)) {
      if (signal.aborted) return
      read += 1
      bars.update([{ label: 'reading', done: read, total: file.count }])
      yield call
      if (read % READ_AT_ONCE === 0) await (read > READ_GENTLY || pauseMs < 1 ? turn() : sleep(pauseMs))
    }
  }
  await action.submit(jobs(), { from: 'accepted' })
  // Not sealed when it was interrupted: the rest of the file has to come.
  if (!signal.aborted) await action.seal()
  bars.clear()
}

async function* firstOf<Item>(items: AsyncIterable<Item>, count: number): AsyncGenerator<Item> {
  let taken = 0
  for await (const item of items) {
    yield item
    taken += 1
    if (taken === count) return
  }
}

/** Until it ends; or, when that is asked for, until the calls in flight have. */
async function follow(
  queue: Queue,
  action: Action,
  file: CallsFile,
  { output, signal }: { output: Output; signal: AbortSignal },
): Promise<Omit<RunEnd, 'doneBefore'>> {
  const bars = new ProgressBars(output)
  const show = (progress: Pick<Progress, 'done' | 'failed' | 'perSecond' | 'etaMs'>) => [
    { label: 'calls', total: file.count, ...progress },
  ]
  const over = new AbortController()
  const showing = async () => {
    try {
      for await (const { done, failed, perSecond, etaMs } of action.progress({ signal: over.signal })) {
        bars.update(show({ done, failed, perSecond, etaMs }))
      }
    } catch (error) {
      if (!over.signal.aborted) throw error
    }
  }
  const ending = async () => {
    try {
      // Sooner than progress, whose last step comes up to a tenth of a second later.
      return await action.finished({ signal })
    } catch (error) {
      if (!signal.aborted) throw error
      return undefined
    } finally {
      over.abort()
    }
  }
  const [summary] = await Promise.all([ending(), showing()])
  if (!summary) await queue.close()
  const view = (await action.view()) as ActionView
  bars.end(show({ done: doneOf(view), failed: view.counts.failed }))
  return { action, view, summary }
}
