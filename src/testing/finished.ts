import { systemClock } from '../clock.ts'
import { isStoreSilent } from '../engine/is-store-away.ts'
import type { LeasedJob } from '../engine/job.ts'
import type { JobView } from '../engine/job-view.ts'
import { insideOf, type JobOwner, type Queue } from '../engine/queue.ts'
import { unlessAborted } from '../engine/unless-aborted.ts'
import { WaitedTooLongError } from '../errors.ts'
import type { JobErrorRecord } from '../store/record.ts'
import { repeatWhileUnavailable } from '../store/repeat.ts'

export interface FinishedOptions extends JobOwner {
  /** For how long it is waited for, in real time. @default 5_000 */
  timeoutMs?: number
}

/** How a job has ended for good. */
export interface JobEnd {
  readonly state: 'succeeded' | 'failed' | 'canceled'
  /** What its handler returned; undefined as well if it ended before it was waited for, or in another process. */
  readonly result: unknown
  readonly error: JobErrorRecord | undefined
}

const DEFAULT_TIMEOUT_MS = 5_000
// When the time is over it looks once more, to say how the job stands. Redis may be away: it is not waited for any longer.
const LAST_LOOK_MS = 1_000

/**
 * Resolves when a job has ended for good, its retries included: at once if it has. Waits for a signal: the end of a run in
 * this process, or an event of its queue. Of a job that was delayed and has no id of its own nothing is kept when it succeeds:
 * wait for it before it does. Rejects with WaitedTooLongError after `timeoutMs` and says how the job stands, if Redis does (a second later otherwise); with a
 * manual clock, `clock.runUntil(finished(queue, id))` brings what is due later.
 */
export async function finished(queue: Queue, id: string, options: FinishedOptions = {}): Promise<JobEnd> {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, ...owner } = options
  const giveUpAt = performance.now() + timeoutMs
  const over = new AbortController()
  const bell = new Bell()
  let success: { readonly value?: unknown } | undefined
  const forget = insideOf(queue).ends.listen(({ job, result }) => {
    if (!isMeant(job, id, owner)) return
    if (result.kind === 'succeeded') success = result
    bell.ring()
  })
  const following = ringOnEvents(queue, bell, over.signal)
  const cancelTimer = systemClock.setTimer(() => {
    over.abort()
    bell.ring()
  }, timeoutMs)
  try {
    for (;;) {
      // Before it looks: what happens meanwhile rings again.
      const rung = bell.next()
      const look = repeatWhileUnavailable(() => queue.job(id, owner), giveUpAt - performance.now())
      const view = await unlessAborted(look, over.signal, LAST_LOOK_MS).catch((cause: unknown) => {
        const isOver = over.signal.aborted && (cause === over.signal.reason || isStoreSilent(cause))
        throw isOver ? new WaitedTooLongError({ what: describeUnseen(id), timeoutMs }) : cause
      })
      const { state, error } = view ?? { state: success ? 'succeeded' : 'unknown', error: undefined }
      if (state === 'succeeded') return { state, result: success?.value, error }
      if (state === 'failed' || state === 'canceled') return { state, result: undefined, error }
      if (!view) throw new Error(`There is no job ${JSON.stringify(id)} in queue "${queue.name}", or not any more.`)
      if (over.signal.aborted) throw new WaitedTooLongError({ what: describe(view), timeoutMs })
      await rung
    }
  } finally {
    cancelTimer()
    forget()
    over.abort()
    await following
  }
}

/** A generated id names its tenant and action; a given one is known within them. */
function isMeant(job: LeasedJob, id: string, { tenant = 'default', action }: JobOwner): boolean {
  return job.key === id || (job.id === id && job.tenant === tenant && job.action === action)
}

/** What others do to it, or a lease that ran out once too often, is told there. */
async function ringOnEvents(queue: Queue, bell: Bell, signal: AbortSignal): Promise<void> {
  try {
    for await (const { type } of queue.events({ signal })) if (type.startsWith('job.')) bell.ring()
  } catch {
    // Closed, or Redis is away: the look that follows says so.
    bell.ring()
  }
}

function describeUnseen(id: string): string {
  return `job ${JSON.stringify(id)}, of which Redis says nothing because it is away,`
}

function describe({ id, state, dueAt, reason }: JobView): string {
  const until = dueAt === undefined ? '' : ` until ${new Date(dueAt).toISOString()}`
  return `job ${JSON.stringify(id)}, which is ${state}${until}${reason ? ` (${reason})` : ''},`
}

class Bell {
  #ring: () => void = () => {}

  /** Resolves when it rings next. One waits at a time. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#ring = resolve
    })
  }

  ring(): void {
    this.#ring()
  }
}
