import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { finishAndClaim as script } from '../scripts.generated.ts'

/** What became of a job, as its worker tells the store. */
export type Finish =
  | { readonly outcome: 'succeeded' }
  /** Failed; runs again after `delayMs`. */
  | { readonly outcome: 'retry'; readonly delayMs: number; readonly error: string }
  /** The upstream pushed back; runs again after `delayMs` without costing a retry. */
  | { readonly outcome: 'throttled'; readonly delayMs: number }
  /** A dead letter. */
  | { readonly outcome: 'dead'; readonly reason: DeadReason; readonly error: string }
  /** Not started, because its grant was stale: at the front again, its permits given back. */
  | { readonly outcome: 'returned' }
  /** Not finished, because the worker stops: at the front again. */
  | { readonly outcome: 'released' }
  /** This worker does not know its type; another may, after `delayMs`. */
  | { readonly outcome: 'unknown'; readonly delayMs: number }

export type DeadReason = 'failed' | 'discarded' | 'throttled' | 'unknown-type' | 'stalled'

export interface FinishedJob {
  readonly fence: string
  readonly jobKey: string
  readonly standing: Level
  readonly finish: Finish
}

export interface ClaimRequest {
  readonly wanted: number
  readonly levels: string
  readonly leaseMs: number
  /** For how long the client waits to be woken if it gets less than it wants. */
  readonly idleForMs: number
  readonly hasSuspect: boolean
  readonly finished: readonly FinishedJob[]
  /** For tests and simulation; the server's time otherwise. */
  readonly nowUs?: string
}

export interface ClaimReply {
  /** `again`: nothing found yet, but not everything was looked at. */
  readonly word: 'claimed' | 'idle' | 'again'
  /** Positions in `finished` of jobs that were no longer the caller's. */
  readonly stale: readonly number[]
  /** Until the next claim can bring anything; undefined when only a wake-up can tell. */
  readonly waitMs: number | undefined
  /** The caller is the one to claim then. */
  readonly holdsAlarm: boolean
  readonly fence: string
  /** How long the grants keep, from when the claim was sent; undefined: for ever. */
  readonly freshMs: number | undefined
  /** jobKey, level it stood on, record; for each. */
  readonly jobs: readonly string[]
}

// A claim's reply is at most this large, unless one job is larger.
const LARGEST_REPLY = 1_000_000

export async function finishAndClaim(
  requests: Requests,
  claim: ClaimRequest,
  giveUpAfterMs?: number,
): Promise<ClaimReply> {
  const finished = encodeFinished(claim.finished)
  const reply = await requests.run(
    'finish-and-claim',
    script,
    (request, server) => ({
      nowGiven: claim.nowUs ?? '',
      client: requests.client,
      request,
      server,
      wanted: claim.wanted,
      levelsServed: claim.levels,
      lease: claim.leaseMs * 1000,
      idleFor: claim.idleForMs * 1000,
      hasSuspect: claim.hasSuspect ? 1 : 0,
      maxBytes: LARGEST_REPLY,
      finished,
    }),
    giveUpAfterMs === undefined ? {} : { giveUpAfterMs },
  )
  return decode(reply)
}

function encodeFinished(finished: readonly FinishedJob[]): (string | number)[] {
  const list = new Array<string | number>(finished.length * 6)
  let at = 0
  for (const { fence, jobKey, standing, finish } of finished) {
    list[at++] = fence
    list[at++] = jobKey
    list[at++] = standing
    list[at++] = finish.outcome
    list[at++] = 'delayMs' in finish ? Math.round(finish.delayMs * 1000) : 0
    list[at++] = detailOf(finish)
  }
  return list
}

function detailOf(finish: Finish): string {
  switch (finish.outcome) {
    case 'retry':
      return finish.error
    case 'dead':
      return `${finish.reason},${finish.error}`
    default:
      return ''
  }
}

function decode(reply: readonly unknown[]): ClaimReply {
  const [word, stale, wait, alarm, fence, fresh, jobs] = reply as [
    ClaimReply['word'],
    number[],
    number,
    number,
    string,
    number,
    string[],
  ]
  return {
    word,
    stale,
    waitMs: wait < 0 ? undefined : wait / 1000,
    holdsAlarm: alarm === 1,
    fence,
    freshMs: fresh === 0 ? undefined : fresh / 1000,
    jobs,
  }
}
