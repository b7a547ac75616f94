import type { Level } from '../../../src/store/names.ts'
import type { ClaimRequest } from '../../../src/store/scripts/finish-and-claim.ts'
import { NEVER } from './bucket.ts'
import type { QueueState } from './queue-state.ts'
import type { Job, Stand, Tenant } from './tenant.ts'

const LARGEST_REPLY = 1_000_000

/** A claim while it is made. */
export interface Claim {
  left: number
  looks: number
  bytesLeft: number
  hasSuspect: boolean
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
}

export function newClaim(queue: QueueState, request: ClaimRequest, before: Claim['since']): Claim {
  const present = (level: Level): Tenant[] => queue.tenants.filter(({ stands }) => stands[level].present)
  return {
    left: request.wanted,
    looks: 0,
    bytesLeft: LARGEST_REPLY,
    hasSuspect: request.hasSuspect,
    isClosed: false,
    waitUntil: NEVER,
    fence: 0,
    fresh: undefined,
    jobs: [],
    lines: atLevel((level) => present(level).map(({ name, stands }) => ({ name, score: stands[level].score }))),
    since: before,
    lookedAt: atLevel(() => new Set<string>()),
    misplaced: [],
  }
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
