import type { Requests } from '../requests.ts'
import { takeSchedules as script } from '../scripts.generated.ts'
import { type ScheduleRow, type StoredSchedule, toSchedule } from './read-schedules.ts'

// A reply holds no more than a claim's.
const MAX_BYTES = 1_000_000

/** @param options - `fence`: of what is the caller's already. Undefined when nothing is due, or somebody else looks after it. */
export async function takeSchedules(
  requests: Requests,
  options: { leaseMs: number; most: number; fence?: string; nowUs?: string },
): Promise<{ nowUs: string; schedules: StoredSchedule[] } | undefined> {
  const { leaseMs, most, fence = '', nowUs: nowGiven = '' } = options
  const args = { nowGiven, lease: leaseMs * 1_000, most, fence, maxBytes: MAX_BYTES }
  const reply = await requests.run(script, () => args)
  if (reply[0] === 'none') return undefined
  const [, nowUs, ...rows] = reply as ['taken', string, ...ScheduleRow[]]
  return { nowUs, schedules: rows.map(toSchedule) }
}
