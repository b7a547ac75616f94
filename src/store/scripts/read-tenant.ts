import { type Level, levels } from '../names.ts'
import { NEVER_US } from '../next-due.ts'
import type { Requests } from '../requests.ts'
import { readTenant as script } from '../scripts.generated.ts'

export interface FoundTenant {
  readonly state: 'ready' | 'parked' | 'paused' | 'idle'
  /** The limit that parked it. */
  readonly parkedBy: string | undefined
  /** In ms since 1970; Infinity: until one of its jobs ends. */
  readonly parkedUntil: number | undefined
  readonly weight: number
  readonly basePriority: number
  readonly levelOverride: Level | undefined
  readonly waiting: number
  readonly delayed: number
  readonly running: number
  /** The longest it has waited for a turn while it could run. */
  readonly longestWaitMs: number
  /** The fairness audit: what it was entitled to while it could run, and what it was given, in jobs. */
  readonly fairness: Readonly<Record<Level, { readonly entitled: number; readonly received: number }>>
}

type Reply = [
  'tenant',
  FoundTenant['state'],
  ...strings: [parkedBy: string, parkedUntil: string, weight: string, base: string, level: string],
  ...counts: [waiting: number, delayed: number, running: number],
  longestWait: number,
  entitled: number[],
  received: number[],
]

/** @param tenant - Its token. */
export async function readTenant(requests: Requests, tenant: string, nowUs = ''): Promise<FoundTenant> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs, name: tenant }))
  const [, state, parkedBy, until, weight, base, level, waiting, delayed, running, longest, entitled, received] =
    reply as Reply
  const fairness = Object.fromEntries(
    levels.map((each, at) => [each, { entitled: (entitled[at] ?? 0) / 1e6, received: received[at] ?? 0 }]),
  ) as FoundTenant['fairness']
  return {
    state,
    parkedBy: parkedBy === '' ? undefined : parkedBy,
    parkedUntil: until === '' ? undefined : Number(until) >= NEVER_US ? Number.POSITIVE_INFINITY : Number(until) / 1000,
    weight: Number(weight),
    basePriority: Number(base),
    levelOverride: level === '' ? undefined : (level as Level),
    waiting,
    delayed,
    running,
    longestWaitMs: longest / 1000,
    fairness,
  }
}
