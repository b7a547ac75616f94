import type { Requests } from '../requests.ts'
import { setSchedule as script } from '../scripts.generated.ts'

export interface SetScheduleReply {
  readonly result: 'created' | 'changed' | 'unchanged'
  /** When the queue got its first schedule, in µs: another once the store was emptied. */
  readonly sinceUs: string
}

/** @param schedule - `name`: a token; `dueUs`: its next tick, '' for none; `onlyIfAbsent`: leave one that is there. */
export async function setSchedule(
  requests: Requests,
  schedule: { name: string; definition: string; dueUs: string; onlyIfAbsent: boolean },
  nowUs = '',
): Promise<SetScheduleReply> {
  const { name, definition, dueUs: due } = schedule
  const onlyIfAbsent = schedule.onlyIfAbsent ? 1 : 0
  const args = (request: number) => ({ nowGiven: nowUs, request, name, definition, due, onlyIfAbsent })
  const [result, sinceUs] = await requests.run(script, args)
  return { result, sinceUs } as SetScheduleReply
}
