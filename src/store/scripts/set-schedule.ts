import type { Requests } from '../requests.ts'
import { setSchedule as script } from '../scripts.generated.ts'

export type SetScheduleReply = 'created' | 'changed' | 'unchanged'

/** @param schedule - `name`: a token; `dueUs`: its next tick, '' for none; `onlyIfAbsent`: leave one that is there. */
export async function setSchedule(
  requests: Requests,
  schedule: { name: string; definition: string; dueUs: string; onlyIfAbsent: boolean },
  nowUs = '',
): Promise<SetScheduleReply> {
  const { name, definition, dueUs: due } = schedule
  const onlyIfAbsent = schedule.onlyIfAbsent ? 1 : 0
  const args = (request: number) => ({ nowGiven: nowUs, request, name, definition, due, onlyIfAbsent })
  const [word] = await requests.run('set-schedule', script, args)
  return word as SetScheduleReply
}
