import type { Clock } from '../clock.ts'
import type { Level } from '../store/names.ts'
import type { Redis } from '../store/redis.ts'
import type { Requests } from '../store/requests.ts'
import { type DueWork, finishAndClaim } from '../store/scripts/finish-and-claim.ts'
import { type ClaimedJob, ClaimHandle } from './claimed-job.ts'
import { Grant } from './grant.ts'
import { decodeJobs } from './job.ts'
import type { QueueFigures } from './queue-figures.ts'
import type { QueueSettings } from './queue-options.ts'
import type { RunEnds } from './run-ends.ts'

interface ClaimerParts {
  readonly clock: Clock
  readonly redis: Redis
  readonly requests: Requests
  readonly settings: QueueSettings
  readonly figures: QueueFigures
  readonly ends: RunEnds
  readonly onDue: (due: DueWork) => void
  readonly recordCongestion: () => Promise<void>
}

/** Claims for callers with a loop of their own. */
export class Claimer {
  readonly #parts: ClaimerParts

  constructor(parts: ClaimerParts) {
    this.#parts = parts
  }

  /** As many as there are, up to `wanted`. Does not wait for more. */
  async claim(claim: { wanted: number; leaseMs: number; levels: readonly Level[] }): Promise<ClaimedJob[]> {
    const { clock, requests, figures, onDue, recordCongestion } = this.#parts
    const { wanted, leaseMs } = claim
    const found: ClaimedJob[] = []
    for (;;) {
      const sentAt = clock.now()
      const reply = await finishAndClaim(requests, {
        wanted: wanted - found.length,
        levels: claim.levels.join(' '),
        leaseMs,
        idleForMs: 0,
        hasSuspect: false,
        finished: [],
      })
      onDue(reply)
      const freshUntil = reply.freshMs === undefined ? undefined : sentAt + reply.freshMs
      const jobs = decodeJobs(reply.fence, reply.jobs, reply.kept)
      figures.claims.observe(jobs.length)
      for (const job of jobs) {
        const grant = new Grant({ ...this.#parts, job, freshUntil })
        found.push(new ClaimHandle({ ...this.#parts, job, grant, leaseMs }))
      }
      if (reply.isToRecord) await recordCongestion()
      if (reply.word !== 'again' || found.length >= wanted) return found
    }
  }
}
