import { setImmediate } from 'node:timers/promises'
import type { MissedRule } from './schedule-input.ts'
import type { Timetable } from './timetable.ts'

/** What becomes of a schedule that is due. Instants in ms since 1970. */
export interface DuePlan {
  /** Ticks that get a job now. */
  readonly ticks: readonly number[]
  /** How many get none. */
  readonly missed: number
  /** When it is due next: in the past if there is more to make up for than fits in one step. Undefined for never. */
  readonly next: number | undefined
}

// A tick that is later is missed where missed ones are skipped. A process that dies with a tick in hand, or Redis that
// restarts, makes ticks late by seconds; that is no reason to leave one out.
const LATE_MS = 60_000
const MOST_MADE_UP = 1_000
// Jobs of one schedule in one step: the script that takes them in must be short.
const JOBS_AT_ONCE = 100
// The rest of a long outage is counted in further steps, so that the store hears in time how far this process is.
const BREATHS = 20

/** Some of the instants of a timetable from one on. */
interface Walk {
  readonly count: number
  readonly last: number
  /** The one after the last. */
  readonly next: number | undefined
}

/** @param due - The first tick that has no job yet; not after `now`. */
export async function planTicks(
  timetable: Timetable,
  rule: MissedRule,
  { due, now }: { due: number; now: number },
): Promise<DuePlan> {
  const passed = await walk(timetable, due, { until: now, most: BREATHS * timetable.stepsAtOnce })
  if (rule === 'all') return allOf(timetable, due, passed.count)
  const { count, last, next } = passed
  if (next !== undefined && next <= now) return { ticks: [], missed: count, next }
  if (rule === 'skip' && now - last > LATE_MS) return { ticks: [], missed: count, next }
  return { ticks: [last], missed: count - 1, next }
}

/** How many ticks have no job yet. @param due - The first of them; not after `now`. */
export async function countTicks(timetable: Timetable, { due, now }: { due: number; now: number }): Promise<number> {
  const { count } = await walk(timetable, due, { until: now, most: Number.POSITIVE_INFINITY })
  return count
}

/** The oldest first, as many as fit in one step; what is left stays due. */
async function allOf(timetable: Timetable, due: number, count: number): Promise<DuePlan> {
  if (count > MOST_MADE_UP) {
    const { next } = await walk(timetable, due, { most: count - MOST_MADE_UP })
    return { ticks: [], missed: count - MOST_MADE_UP, next }
  }
  const ticks: number[] = []
  const { next } = await walk(timetable, due, { most: Math.min(count, JOBS_AT_ONCE), each: (tick) => ticks.push(tick) })
  return { ticks, missed: 0, next }
}

async function walk(
  timetable: Timetable,
  from: number,
  bounds: { most: number; until?: number; each?: (tick: number) => void },
): Promise<Walk> {
  const { most, until = Number.POSITIVE_INFINITY, each } = bounds
  let [count, last] = [1, from]
  each?.(last)
  let next = timetable.next(last)
  while (count < most && next !== undefined && next <= until) {
    last = next
    count += 1
    each?.(last)
    next = timetable.next(last)
    if (count % timetable.stepsAtOnce === 0) await setImmediate()
  }
  return { count, last, next }
}
