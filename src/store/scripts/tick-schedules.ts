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
export type TickWord = 'ticked' | 'changed' | 'full'

export async function tickSchedules(
  requests: Requests,
  ticks: readonly Tick[],
  options: { leaseMs: number; nowUs?: string },
): Promise<{ hasMore: boolean; words: readonly TickWord[] }> {
  const list: (string | number)[] = []
  for (const { schedule, nextUs, missed, tenant, level, lane, jobs } of ticks) {
    list.push(schedule.name, schedule.revision, schedule.dueUs, nextUs, missed, tenant, level, lane, jobs.length)
    for (const { tickUs } of jobs) list.push(tickUs)
    for (const { digest, record } of jobs) list.push(digest, record)
  }
  const reply = await requests.run('tick-schedules', script, (request) => ({
    nowGiven: options.nowUs ?? '',
    request,
    lease: options.leaseMs * 1_000,
    ticks: list,
  }))
  const [, more, ...words] = reply as ['ticked', number, ...TickWord[]]
  return { hasMore: more === 1, words }
}
