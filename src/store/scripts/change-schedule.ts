import type { Requests } from '../requests.ts'
import { changeSchedule as script } from '../scripts.generated.ts'

export type ChangeScheduleReply = 'changed' | 'unchanged' | 'unknown'

/** @param change - `name`: a token; `dueUs`: of one that is resumed, its next tick. */
export async function changeSchedule(
  requests: Requests,
  change: { name: string; verb: 'remove' | 'pause' | 'resume'; dueUs?: string },
  nowUs = '',
): Promise<ChangeScheduleReply> {
  const { name, verb, dueUs: due = '' } = change
  const [word] = await requests.run(script, (request) => ({
    nowGiven: nowUs,
    request,
    name,
    verb,
    due,
  }))
  return word as ChangeScheduleReply
}
