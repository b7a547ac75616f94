import type { GroupKeys } from '../keys.ts'
import type { Requests } from '../requests.ts'
import { learnShared as script } from '../scripts.generated.ts'
import type { Lesson } from './finish-and-claim.ts'

/** What an upstream answered to a call that no job made. */
export interface CallLesson extends Omit<Lesson, 'upstream'> {
  /** Of the call, and the fence of its grant; '': unknown. */
  readonly permits: number
  readonly fence: string
  readonly nowUs?: string
}

export interface SharedLesson extends CallLesson {
  readonly limit: string
}

export async function learnShared(requests: Requests<GroupKeys>, lesson: SharedLesson): Promise<void> {
  await requests.run(script, (request, server) => ({
    request,
    server,
    knownSince: requests.knownSince,
    ...encodeLesson(lesson),
    names: [lesson.limit],
  }))
}

/** As both scripts read it. */
export function encodeLesson({ nowUs = '', member = '', permits, fence, pushback, reading }: CallLesson) {
  return {
    nowGiven: nowUs,
    member,
    permits,
    fence,
    pushed: pushback ? String(Math.round((pushback.retryAfterMs ?? 0) * 1000)) : '',
    reading: reading
      ? `${reading.remaining}:${Math.round(reading.resetInMs * 1000)}:${Math.round(reading.limit ?? 0)}`
      : '',
  }
}
