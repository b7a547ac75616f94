import type { Level } from '../../../src/store/names.ts'
import type { ClaimRequest } from '../../../src/store/scripts/finish-and-claim.ts'
import { NEVER } from './bucket.ts'
import type { OpenLimit } from './open-limit.ts'
import type { QueueState } from './queue-state.ts'
import type { Job, Stand } from './tenant.ts'

const LARGEST_REPLY = 1_000_000

/** A claim while it is made. */
export interface Claim {
  left: number
  looks: number
  bytesLeft: number
  hasSuspect: boolean
  /** The tenant that is served has one that must wait. */
  metSuspect: boolean
  /** Tenants of whom only such are left; those of them that count as looked at. */
  held: number
  heldLooks: number
  isClosed: boolean
  waitUntil: number
  fence: number
  fresh: number | undefined
  readonly jobs: Job[]
  /** Tenants in line by level, and the waits of those that were there before the claim. */
  readonly lines: Record<Level, { name: string; score: number }[]>
  readonly since: Record<Level, { name: string; since: number }[]>
  readonly lookedAt: Record<Level, Set<string>>
  /** Whose place in the index of the overdue is too old. */
  readonly misplaced: Stand[]
  /** Where permits are saved up for somebody's next job: nobody else of there gets any. */
  readonly saving: Set<Level>
  /** Limits of the queue and its levels that had nothing for somebody in line. */
  readonly denied: Set<OpenLimit>
}

export function newClaim(
  queue: QueueState,
  request: ClaimRequest,
  before: { readonly since: Claim['since']; readonly lines: Claim['lines'] },
): Claim {
  return {
    left: request.wanted,
    looks: 0,
    bytesLeft: LARGEST_REPLY,
    hasSuspect: request.hasSuspect,
    metSuspect: false,
    held: 0,
    heldLooks: 0,
    isClosed: false,
    waitUntil: NEVER,
    fence: 0,
    fresh: undefined,
    jobs: [],
    lines: atLevel((level) => [...lineOf(queue, level), ...leftOf(queue, level, before.lines[level])]),
    since: before.since,
    lookedAt: atLevel(() => new Set<string>()),
    misplaced: [],
    saving: new Set(),
    denied: new Set(),
  }
}

export function linesOf(queue: QueueState): Claim['lines'] {
  return atLevel((level) => lineOf(queue, level))
}

function lineOf(queue: QueueState, level: Level): Claim['lines'][Level] {
  const present = queue.tenants.filter(({ stands }) => stands[level].present)
  return present.map(({ name, stands }) => ({ name, score: stands[level].score })).sort(byScore)
}

export function byScore(a: { name: string; score: number }, b: { name: string; score: number }): number {
  return a.score - b.score || (a.name < b.name ? -1 : 1)
}

/** Who has left the line since the script began is looked at all the same, right after the one that stood before it. */
function leftOf(queue: QueueState, level: Level, before: Claim['lines'][Level]): Claim['lines'][Level] {
  const isPresent = ({ name }: { name: string }): boolean => queue.tenant(name).stands[level].present
  return before.flatMap((each, at) => {
    if (isPresent(each)) return []
    const score = before.slice(0, at).findLast(isPresent)?.score ?? Number.NEGATIVE_INFINITY
    return [{ name: each.name, score: score + 0.5 }]
  })
}

export function overdueIndex(queue: QueueState): Claim['since'] {
  return atLevel((level) =>
    queue.tenants
      .filter(({ stands }) => stands[level].present)
      .map(({ name, stands }) => ({ name, since: stands[level].indexedSince })),
  )
}

function atLevel<T>(make: (level: Level) => T): Record<Level, T> {
  return { high: make('high'), normal: make('normal'), low: make('low') }
}
