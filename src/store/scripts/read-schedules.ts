import type { Requests } from '../requests.ts'
import { readSchedules as script } from '../scripts.generated.ts'

/** A schedule as it is stored. Instants in µs since 1970, as text; '' for none. */
export interface StoredSchedule {
  /** A token. */
  readonly name: string
  /** JSON; scripts do not read it. */
  readonly definition: string
  /** Its next tick. Of a paused one, the tick it was paused before. */
  readonly dueUs: string
  /** Changes with everything about it but its ticks. */
  readonly revision: string
  /** Since when it is paused. */
  readonly pausedUs: string
  /** The last tick that a job was made for. */
  readonly lastUs: string
  /** How many ticks jobs were made for. */
  readonly ticks: number
  readonly missed: number
}

export type ScheduleRow = readonly string[]

/**
 * Undefined in the place of each that is not there; `sinceUs`: when the queue got its first schedule, '' if it has had none.
 * @param names - Tokens.
 */
export async function readSchedules(
  requests: Requests,
  names: readonly string[],
  nowUs = '',
): Promise<{ nowUs: string; sinceUs: string; schedules: (StoredSchedule | undefined)[] }> {
  const reply = await requests.run(script, () => ({ nowGiven: nowUs, names }))
  const [, now, sinceUs, ...rows] = reply as ['schedules', string, string, ...ScheduleRow[]]
  return { nowUs: now, sinceUs, schedules: rows.map((row) => (row.length === 0 ? undefined : toSchedule(row))) }
}

export function toSchedule(row: ScheduleRow): StoredSchedule {
  const [name = '', definition = '', dueUs = '', revision = '', pausedUs = '', lastUs = '', ticks, missed] = row
  return { name, definition, dueUs, revision, pausedUs, lastUs, ticks: Number(ticks), missed: Number(missed) }
}
