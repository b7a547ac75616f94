import type { AnswerHeaders } from '../limits/answer-headers.ts'
import { type QuotaReading, quotaReadingOf } from '../limits/quota-reading.ts'
import { type Pushback, pushbackOf } from '../limits/upstream-answer.ts'
import type { Lesson } from '../store/scripts/finish-and-claim.ts'
import type { CallLesson } from '../store/scripts/learn-shared.ts'
import type { Permit } from './permit-line.ts'
import { throttleDelayMs } from './retry.ts'

/** An upstream's answer, as `fetch`, undici, axios or node:http give it. */
export interface Answer {
  readonly status: number
  readonly headers: AnswerHeaders | Iterable<readonly [string, string]>
  /**
   * The beginning of the body: some upstreams say only there why they refuse. A `Response` can be given as it is; its body is
   * left alone then.
   */
  readonly text?: string | (() => unknown)
}

/** What the limits learn from the calls of one job: the last word of the upstream counts, and the longest wait. */
export class Lessons {
  #pushback: Pushback | undefined
  #reading: QuotaReading | undefined

  /**
   * Answers the pushback, if the answer is one.
   * @param nowMs - When it came, in ms since 1970: some upstreams name an instant.
   */
  learn({ status, headers, text }: Answer, nowMs: number): Pushback | undefined {
    const named = inLowerCase(headers)
    this.#reading = quotaReadingOf(named, nowMs) ?? this.#reading
    const pushback = pushbackOf({ status, headers: named, text: typeof text === 'string' ? text : '' }, nowMs)
    if (pushback) this.pushedBack(pushback.retryAfterMs)
    return pushback
  }

  /** @param retryAfterMs - As a handler says it: what is no time counts as none, and nobody is told of more than a day. */
  pushedBack(retryAfterMs: number | undefined): void {
    const longest = Math.max(this.#pushback?.retryAfterMs ?? 0, throttleDelayMs(retryAfterMs) ?? 0)
    this.#pushback = { retryAfterMs: longest > 0 ? longest : undefined }
  }

  /** @param upstream - The limit that stands for the upstream; undefined: the narrowest. */
  lessonFor(upstream: string | undefined): Lesson | undefined {
    if (!this.#pushback && !this.#reading) return undefined
    return { upstream: upstream ?? '', pushback: this.#pushback, reading: this.#reading }
  }
}

/**
 * What an answer to a call teaches the limit that granted it to code without a job.
 * @param nowMs - When it came, in ms since 1970.
 */
export function lessonOfCall(
  limit: string,
  answer: Answer,
  permit: Permit | undefined,
  nowMs: number,
): { pushback: Pushback | undefined; lesson: CallLesson } {
  const lessons = new Lessons()
  const pushback = lessons.learn(answer, nowMs)
  const taught = lessons.lessonFor(limit)
  const { permits = 1, fence = '', grant } = permit ?? {}
  const member = grant?.[limit]
  const lesson = { permits, fence, pushback: taught?.pushback, reading: taught?.reading }
  return { pushback, lesson: member === undefined ? lesson : { ...lesson, member } }
}

function inLowerCase(headers: Answer['headers']): AnswerHeaders {
  const pairs = Symbol.iterator in headers ? headers : Object.entries(headers)
  return Object.fromEntries([...pairs].map(([name, value]) => [name.toLowerCase(), value]))
}
