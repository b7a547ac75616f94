import type { Requests } from '../requests.ts'
import { setSchedule as script } from '../scripts.generated.ts'
import type { StoredSchedule } from './read-schedules.ts'

export interface SetScheduleReply {
  readonly result: 'created' | 'changed' | 'unchanged'
  /** When the queue got its first schedule, in µs: another once the store was emptied. */
  readonly sinceUs: string
}

/** What a schedule is made, or changed to. */
export interface SetSchedule {
  /** A token. */
  readonly name: string
  readonly definition: string
  /** Its next tick; '' for none. */
  readonly dueUs: string
  /** Leave one that is there. */
  readonly onlyIfAbsent: boolean
  /** The one that is there, from which the rest was worked out. */
  readonly was?: Pick<StoredSchedule, 'revision' | 'dueUs'> | undefined
  /** How many of its ticks were due and get no job, and the tenant they were for, a token. */
  readonly missed?: { readonly count: number; readonly tenant: string } | undefined
}

/** Undefined, and nothing happened, if the schedule was changed, or has ticked, since `was` was read. */
export async function setSchedule(
  requests: Requests,
  schedule: SetSchedule,
  nowUs = '',
): Promise<SetScheduleReply | undefined> {
  const { name, definition, dueUs: due, was, missed } = schedule
  const [result, sinceUs] = await requests.run(script, (request) => ({
    nowGiven: nowUs,
    request,
    name,
    definition,
    due,
    onlyIfAbsent: schedule.onlyIfAbsent ? 1 : 0,
    wasRevision: was?.revision ?? '',
    wasDue: was?.dueUs ?? '',
    missed: missed?.count ?? 0,
    missedBy: missed?.tenant ?? '',
  }))
  return result === 'stale' ? undefined : ({ result, sinceUs } as SetScheduleReply)
}
