import type { Requests } from '../requests.ts'
import { tickSchedules as script } from '../scripts.generated.ts'
import type { StoredSchedule } from './read-schedules.ts'

/** What one schedule is moved on by. */
export interface Tick {
  readonly schedule: Pick<StoredSchedule, 'name' | 'revision' | 'dueUs'>
  /** Its next tick; '' for none. */
  readonly nextUs: string
  /** Ticks that passed and get no job. */
  readonly missed: number
  readonly tenant: string
  readonly level: string
  readonly lane: string
  readonly jobs: readonly { readonly tickUs: string; readonly digest: string; readonly record: string }[]
}

/** `changed`: it is not as it was when its tick was worked out, nothing happened. `full`: there is no room for its job. */
type TickWord = 'ticked' | 'changed' | 'full'

export interface TickReply {
  /** Under which others that are due are the caller's; '' when none are. */
  readonly fence: string
  /** Until something is due; undefined when nothing will be. */
  readonly waitMs: number | undefined
  /** For each schedule. */
  readonly words: readonly TickWord[]
}

export async function tickSchedules(
  requests: Requests,
  ticks: readonly Tick[],
  options: { leaseMs: number; nowUs?: string },
): Promise<TickReply> {
  const list: (string | number)[] = []
  for (const { schedule, nextUs, missed, tenant, level, lane, jobs } of ticks) {
    list.push(schedule.name, schedule.revision, schedule.dueUs, nextUs, missed, tenant, level, lane, jobs.length)
    for (const { tickUs } of jobs) list.push(tickUs)
    for (const { digest, record } of jobs) list.push(digest, record)
  }
  const reply = await requests.run(script, (request) => ({
    nowGiven: options.nowUs ?? '',
    request,
    lease: options.leaseMs * 1_000,
    ticks: list,
  }))
  const [, fence, wait, ...words] = reply as ['ticked', string, number, ...TickWord[]]
  return { fence, waitMs: wait < 0 ? undefined : wait / 1_000, words }
}
