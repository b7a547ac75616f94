import type { GroupKeys } from '../keys.ts'
import type { Requests } from '../requests.ts'
import { learnShared as script } from '../scripts.generated.ts'
import type { Lesson } from './finish-and-claim.ts'

/** What an upstream answered to a call that no job made. */
export interface SharedLesson extends Omit<Lesson, 'upstream'> {
  readonly limit: string
  /** Of the call, and the fence of its grant; '': unknown. */
  readonly permits: number
  readonly fence: string
  readonly nowUs?: string
}

export async function learnShared(requests: Requests<GroupKeys>, lesson: SharedLesson): Promise<void> {
  const { pushback, reading } = lesson
  await requests.run('limit.learn', script, (request, server) => ({
    nowGiven: lesson.nowUs ?? '',
    request,
    server,
    member: lesson.member ?? '',
    permits: lesson.permits,
    fence: lesson.fence,
    pushed: pushback ? String(Math.round((pushback.retryAfterMs ?? 0) * 1000)) : '',
    reading: reading
      ? `${reading.remaining}:${Math.round(reading.resetInMs * 1000)}:${Math.round(reading.limit ?? 0)}`
      : '',
    names: [lesson.limit],
  }))
}
