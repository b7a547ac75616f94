import type { Requests } from '../requests.ts'
import { takeSchedules as script } from '../scripts.generated.ts'
import { type ScheduleRow, type StoredSchedule, toSchedule } from './read-schedules.ts'

// A reply holds no more than a claim's.
const MAX_BYTES = 1_000_000

export interface TakenSchedules {
  readonly nowUs: string
  readonly schedules: readonly StoredSchedule[]
  /** Tokens of those of which the store had nothing left but the name. They are gone with this. */
  readonly lost: readonly string[]
}

/** @param options - `fence`: of what is the caller's already. Undefined when nothing is due, or somebody else looks after it. */
export async function takeSchedules(
  requests: Requests,
  options: { leaseMs: number; most: number; fence?: string; nowUs?: string },
): Promise<TakenSchedules | undefined> {
  const { leaseMs, most, fence = '', nowUs: nowGiven = '' } = options
  const args = { nowGiven, lease: leaseMs * 1_000, most, fence, maxBytes: MAX_BYTES }
  const reply = await requests.run(script, () => args)
  if (reply[0] === 'none') return undefined
  const [, nowUs, ...rows] = reply as ['taken', string, ...ScheduleRow[]]
  const isLost = (row: ScheduleRow) => row.length === 1
  return {
    nowUs,
    schedules: rows.filter((row) => !isLost(row)).map(toSchedule),
    lost: rows.filter(isLost).map(([name = '']) => name),
  }
}
