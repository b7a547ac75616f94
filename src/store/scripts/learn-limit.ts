import type { Level } from '../names.ts'
import type { Requests } from '../requests.ts'
import { learnLimit as script } from '../scripts.generated.ts'
import { type CallLesson, encodeLesson } from './learn-shared.ts'

/** What an upstream answered to a call that no job made, and that a limit of a queue or a level granted. */
export interface LimitLesson extends CallLesson {
  readonly limit: string
  /** Whose limits are looked at beside the queue's. */
  readonly level: Level
}

/** False: no such limit is attached. */
export async function learnLimit(requests: Requests, lesson: LimitLesson): Promise<boolean> {
  const [word] = await requests.run(script, (request, server) => ({
    request,
    server,
    knownSince: requests.knownSince,
    name: lesson.limit,
    level: lesson.level,
    ...encodeLesson(lesson),
  }))
  return word === 'learnt'
}
