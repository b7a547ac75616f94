import type { Requests } from '../requests.ts'
import { readSchedulePage as script } from '../scripts.generated.ts'
import { type ScheduleRow, type StoredSchedule, toSchedule } from './read-schedules.ts'

// A page holds no more than a claim's reply.
const MAX_BYTES = 1_000_000

/** A place between two schedules of the list: behind the one of this name, looked at at that instant. */
export interface ScheduleCursor {
  readonly score: string
  readonly name: string
}

export interface SchedulePage {
  readonly total: number
  /** How many are due within the time asked for. */
  readonly inTime: number
  /** When the first is due, in µs; '' when none is. */
  readonly firstUs: string
  readonly schedules: readonly StoredSchedule[]
  /** Behind the last of them; undefined on the last page. */
  readonly cursor: ScheduleCursor | undefined
}

export async function readSchedulePage(
  requests: Requests,
  page: { withinMs: number; onlyInTime: boolean; after: ScheduleCursor | undefined; most: number },
  nowUs = '',
): Promise<SchedulePage> {
  const reply = await requests.run(script, () => ({
    nowGiven: nowUs,
    within: page.withinMs * 1_000,
    onlyInTime: page.onlyInTime ? 1 : 0,
    afterScore: page.after?.score ?? '',
    afterName: page.after?.name ?? '',
    most: page.most,
    maxBytes: MAX_BYTES,
  }))
  type Listed = ['schedules', number, number, string, string, string, ...ScheduleRow[]]
  const [, total, inTime, firstUs, score, name, ...rows] = reply as Listed
  return { total, inTime, firstUs, schedules: rows.map(toSchedule), cursor: score === '' ? undefined : { score, name } }
}
