import { fromToken } from '../../store/names.ts'
import type { StoredSchedule } from '../../store/scripts/read-schedules.ts'
import type { Definition, MissedRule, ScheduleJob } from './schedule-input.ts'

/** A schedule as it stands. Instants are ms since 1970. */
export interface ScheduleView {
  readonly name: string
  /** Of one that goes by the clock: its pattern, and whose clocks it means. */
  readonly cron?: string
  readonly timeZone?: string
  /** Of one that goes by elapsed time: how much, and from which instant it is counted. */
  readonly everyMs?: number
  readonly anchor?: number
  readonly missed: MissedRule
  readonly job: ScheduleJob
  /** Its next tick; undefined while it is paused. */
  readonly nextAt: number | undefined
  /** The last tick that a job was made for. */
  readonly lastAt: number | undefined
  readonly pausedSince: number | undefined
  /** How many ticks jobs were made for. */
  readonly ticks: number
  /** How many ticks got none, because nobody was there in time. */
  readonly missedTicks: number
}

export function toScheduleView(stored: StoredSchedule): ScheduleView {
  const { name, definition, dueUs, lastUs, pausedUs, ticks, missed } = stored
  return {
    name: fromToken(name),
    ...(JSON.parse(definition) as Definition),
    nextAt: pausedUs === '' ? msOf(dueUs) : undefined,
    lastAt: msOf(lastUs),
    pausedSince: msOf(pausedUs),
    ticks,
    missedTicks: missed,
  }
}

function msOf(us: string): number | undefined {
  return us === '' ? undefined : Math.round(Number(us) / 1_000)
}
