import { discard, type Outcome, throttled } from '../../engine/outcome.ts'
import { UpstreamError } from '../../errors.ts'
import { pushbackOf, type UpstreamAnswer } from '../../limits/upstream-answer.ts'
import type { ExpectedStatus } from './payload.ts'

/** The upstream was too slow, too early, or is at fault: another time the same call may succeed. */
const retriedStatuses: readonly number[] = [408, 425]

/** Enough for a reason; the rest of an error page is markup. */
const LONGEST_EXCERPT = 300

export function isExpected(status: number, expect: readonly ExpectedStatus[]): boolean {
  return expect.some((each) => each === status || each === `${Math.floor(status / 100)}xx`)
}

/** What an answer that was not expected means for the job. Throws where a retry can help. */
export function verdictOn(host: string, answer: UpstreamAnswer, expect: readonly ExpectedStatus[]): Outcome {
  const { status, text } = answer
  const pushback = pushbackOf(answer)
  if (pushback) return throttled(pushback.retryAfterMs === undefined ? {} : { retryAfterMs: pushback.retryAfterMs })
  const reason = `${host} answered ${status}, not ${expect.join(' or ')}`
  // On a line of its own: the first line is the same for all jobs that fail alike.
  const excerpt = text.trim() === '' ? '' : `\n${text.trim().slice(0, LONGEST_EXCERPT)}`
  if (status >= 500 || retriedStatuses.includes(status)) {
    throw new UpstreamError({ host, status, message: reason + excerpt })
  }
  return discard(`${reason}; asking again would not change that.${excerpt}`)
}
