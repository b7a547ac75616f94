import type { Requests } from '../requests.ts'
import { takeSchedules as script } from '../scripts.generated.ts'
import { type ScheduleRow, type StoredSchedule, toSchedule } from './read-schedules.ts'

// A reply holds no more than a claim's.
const MAX_BYTES = 1_000_000

/** Undefined when nothing is due, or somebody else looks after it. */
export async function takeSchedules(
  requests: Requests,
  options: { leaseMs: number; most: number; nowUs?: string },
): Promise<{ nowUs: string; schedules: StoredSchedule[] } | undefined> {
  const { leaseMs, most } = options
  const args = { nowGiven: options.nowUs ?? '', lease: leaseMs * 1_000, most, maxBytes: MAX_BYTES }
  const reply = await requests.run('take-schedules', script, () => args)
  if (reply[0] === 'none') return undefined
  const [, nowUs, ...rows] = reply as ['taken', string, ...ScheduleRow[]]
  return { nowUs, schedules: rows.map(toSchedule) }
}
