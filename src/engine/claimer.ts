import type { Clock } from '../clock.ts'
import type { Level } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { type ClaimReply, type DueWork, type FinishedJob, finishAndClaim } from '../store/scripts/finish-and-claim.ts'
import { type ClaimedJob, ClaimHandle } from './claimed-job.ts'
import { finishedJob } from './finish.ts'
import { Grant } from './grant.ts'
import { decodeJobs } from './job.ts'
import type { Log } from './log.ts'
import type { QueueFigures } from './queue-figures.ts'
import type { QueueSettings } from './queue-options.ts'
import type { Recovery } from './recovery.ts'
import type { RunEnds } from './run-ends.ts'
import { buryUnreadable } from './unreadable-job.ts'

interface ClaimerParts {
  /** Of the queue. */
  readonly name: string
  readonly log: Log
  readonly clock: Clock
  readonly redis: Redis
  readonly requests: Requests
  readonly settings: QueueSettings
  readonly figures: QueueFigures
  readonly ends: RunEnds
  readonly recovery: Recovery
  readonly onDue: (due: DueWork) => void
  readonly recordCongestion: () => void
}

interface Claim {
  readonly wanted: number
  readonly leaseMs: number
  readonly levels: readonly Level[]
}

/** Claims for callers with a loop of their own. */
export class Claimer {
  readonly #parts: ClaimerParts

  constructor(parts: ClaimerParts) {
    this.#parts = parts
  }

  /**
   * As many as there are, up to `wanted`. Does not wait for more. What was found is leased, and is answered also where asking
   * for more has failed: the next claim says why.
   */
  async claim(claim: Claim): Promise<ClaimedJob[]> {
    const { clock, recovery, figures } = this.#parts
    const found: ClaimedJob[] = []
    let unreadable: FinishedJob[] = []
    for (;;) {
      const [sentAt, wanted, told] = [clock.now(), claim.wanted - found.length, unreadable]
      let reply: ClaimReply
      try {
        reply = await recovery.watch(() => this.#ask(claim, wanted, told))
      } catch (error) {
        if (found.length > 0) return found
        throw error
      }
      if (wanted > 0) figures.claims.observe(reply.jobs.length / 2)
      unreadable = this.#take(reply, { sentAt, leaseMs: claim.leaseMs }, found)
      // Their places are free again, and they are told of with the next call.
      const isMore = reply.word === 'again' || unreadable.length > 0
      // The next call does that, also for others where there is enough for this one.
      const takesBack = recovery.left(reply.leftAtUs) === 0
      if (!takesBack && (!isMore || found.length >= claim.wanted)) return found
    }
  }

  #ask({ leaseMs, levels }: Claim, wanted: number, finished: readonly FinishedJob[]): Promise<ClaimReply> {
    return finishAndClaim(this.#parts.requests, {
      ...{ wanted, leaseMs, finished },
      levels: levels.join(' '),
      idleForMs: 0,
      hasSuspect: false,
      takesBackUntilUs: this.#parts.recovery.untilUs,
    })
  }

  /** Adds what was claimed to `found`. Answers what is to be told of those that cannot be read. */
  #take(reply: ClaimReply, { sentAt, leaseMs }: { sentAt: number; leaseMs: number }, found: ClaimedJob[]) {
    const { name, log, onDue, recordCongestion } = this.#parts
    onDue(reply)
    if (reply.isToRecord) recordCongestion()
    const freshUntil = reply.freshMs === undefined ? undefined : sentAt + reply.freshMs
    const jobs = decodeJobs(reply.fence, reply.jobs, reply.kept)
    const unreadable: FinishedJob[] = []
    for (const job of jobs) {
      if (job.damage !== undefined) {
        unreadable.push(finishedJob(job, buryUnreadable(job, name, log), undefined, undefined))
        continue
      }
      const grant = new Grant({ ...this.#parts, job, freshUntil })
      found.push(new ClaimHandle({ ...this.#parts, job, grant, leaseMs }))
    }
    return unreadable
  }
}
