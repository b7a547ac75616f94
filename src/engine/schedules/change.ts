import { defaultTenant, toToken } from '../../store/names.ts'
import type { StoredSchedule } from '../../store/scripts/read-schedules.ts'
import type { SetSchedule } from '../../store/scripts/set-schedule.ts'
import { countTicks } from './missed.ts'
import type { Definition } from './schedule-input.ts'
import { timetableOf } from './timetable.ts'

/** When a schedule of this definition is due after an instant, in µs; '' for never. */
export function nextUs(definition: Definition, nowMs: number): string {
  const next = timetableOf(definition).next(nowMs)
  return next === undefined ? '' : String(next * 1_000)
}

/**
 * What a new definition makes of ticks that are due. If it is due at the same instants as the old one they stay due, and
 * it says what is done about them. Otherwise they are none of its own: they are missed.
 */
export async function planChange(
  was: StoredSchedule,
  definition: Definition,
  nowMs: number,
): Promise<Pick<SetSchedule, 'dueUs' | 'missed'>> {
  if (timingOf(was.definition) === timingOf(JSON.stringify(definition))) return { dueUs: was.dueUs }
  const dueUs = nextUs(definition, nowMs)
  const due = Number(was.dueUs) / 1_000
  const isOwed = was.pausedUs === '' && was.dueUs !== '' && due <= nowMs
  return isOwed ? { dueUs, missed: await missedOf(was.definition, { due, now: nowMs }) } : { dueUs }
}

async function missedOf(text: string, span: { due: number; now: number }): Promise<SetSchedule['missed']> {
  try {
    const definition = JSON.parse(text) as Definition
    const count = await countTicks(timetableOf(definition), span)
    return { count, tenant: toToken(definition.job.tenant ?? defaultTenant) }
  } catch {
    // Another version wrote it. Of what cannot be understood one tick is missed, as when it is due.
    return { count: 1, tenant: defaultTenant }
  }
}

function timingOf(text: string): string | undefined {
  try {
    const { missed, job, ...timing } = JSON.parse(text) as Definition
    return JSON.stringify(timing)
  } catch {
    return undefined
  }
}
