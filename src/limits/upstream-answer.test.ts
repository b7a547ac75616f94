import { describe, expect, it } from 'vitest'
import type { AnswerHeaders } from './answer-headers.ts'
import { pushbackOf } from './upstream-answer.ts'

/** Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110. */
const now = 784_111_777_000

const answer = (status: number, headers: AnswerHeaders = {}, text = '') => pushbackOf({ status, headers, text }, now)

describe('an answer is a pushback', () => {
  it.each([
    ['429', answer(429)],
    ['503 with Retry-After', answer(503, { 'retry-after': '5' })],
    ['403 with Retry-After', answer(403, { 'retry-after': '5' })],
    ['403 with nothing remaining', answer(403, { 'x-ratelimit-remaining': '0' })],
    ['403 with nothing remaining, by the draft of today', answer(403, { ratelimit: '"default";r=0;t=30' })],
    ['403 with nothing remaining, by the draft of 2021', answer(403, { ratelimit: 'limit=9, remaining=0, reset=30' })],
    ['403 with nothing remaining, as GitLab says it', answer(403, { 'ratelimit-remaining': '0' })],
    ['403 with nothing remaining, as Okta says it', answer(403, { 'x-rate-limit-remaining': '0' })],
    [
      '403 with a reason of Google',
      answer(403, {}, '{"error":{"errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}'),
    ],
    ['403 with a quota of YouTube', answer(403, {}, '{"error":{"errors":[{"reason":"quotaExceeded"}]}}')],
    ["403 with GitHub's secondary limit", answer(403, {}, '{"message":"You have exceeded a secondary rate limit."}')],
    ["403 with GitHub's primary limit in words", answer(403, {}, '{"message":"API rate limit exceeded for 10.0.0.1"}')],
  ])('when it is %s', (_, pushback) => expect(pushback).toBeDefined())

  it.each([
    ['200 with nothing remaining', answer(200, { 'x-ratelimit-remaining': '0', 'retry-after': '5' })],
    ['403 without a reason', answer(403, { 'x-ratelimit-remaining': '12' }, 'Forbidden')],
    ['403 with something remaining', answer(403, { ratelimit: '"default";r=3;t=30' })],
    [
      '403 that only talks of quotas',
      answer(403, {}, 'You may not change the quota. See "What if quota is exceeded?"'),
    ],
    ['503 without Retry-After', answer(503)],
    ['500 with Retry-After', answer(500, { 'retry-after': '5' })],
    ['404', answer(404)],
  ])('but not when it is %s', (_, pushback) => expect(pushback).toBeUndefined())
})

describe('how long to wait', () => {
  it.each<[AnswerHeaders, number]>([
    [{ 'retry-after': '120' }, 120_000],
    [{ 'retry-after': ' 2 ' }, 2_000],
    [{ 'retry-after': '1.5' }, 1_500],
    [{ 'retry-after': ['3', '7'] }, 7_000],
    [{ 'retry-after': 'Sun, 06 Nov 1994 08:50:37 GMT' }, 60_000],
    [{ 'retry-after': 'Sunday, 06-Nov-94 08:50:37 GMT' }, 60_000],
    [{ 'retry-after': 'Sun Nov  6 08:50:37 1994' }, 60_000],
    [{ ratelimit: '"default";r=0;t=30' }, 30_000],
    [{ ratelimit: '"burst";r=0;t=2, "daily";r=0;t=3600' }, 3_600_000],
    [{ ratelimit: '"burst";r=0;t=2, "daily";r=9;t=3600' }, 2_000],
    [{ ratelimit: '"a;t=9,b";t=4' }, 4_000],
    [{ ratelimit: ['"burst";r=0;t=2', '"daily";r=0;t=60'] }, 60_000],
    [{ ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
    [{ 'ratelimit-reset': '20', 'ratelimit-remaining': '0' }, 20_000],
    [{ 'x-ratelimit-reset': '784111787', 'x-ratelimit-remaining': '0' }, 10_000],
    [{ 'x-ratelimit-reset': '784111787.25' }, 10_250],
    [{ 'x-ratelimit-reset': '784111787000' }, 10_000],
    [{ 'x-ratelimit-reset': '45' }, 45_000],
    [{ 'x-ratelimit-reset-after': '1.25' }, 1_250],
    [{ 'x-rate-limit-reset': '784111787' }, 10_000],
    [{ 'x-ratelimit-reset': '1994-11-06T08:49:47Z', 'x-ratelimit-remaining': '0' }, 10_000],
    [{ 'x-ratelimit-reset-requests': '1m30s', 'x-ratelimit-remaining-requests': '0' }, 90_000],
    [
      { 'x-ratelimit-remaining-requests': '5', 'x-ratelimit-reset-requests': '1m', 'x-ratelimit-reset-tokens': '2.5s' },
      2_500,
    ],
    [{ 'retry-after': '9'.repeat(40) }, 366 * 86_400_000],
  ])('%o says %i ms', (headers, retryAfterMs) => expect(answer(429, headers)).toEqual({ retryAfterMs }))

  it('is unknown when nothing understandable is said', () => {
    for (const headers of [
      {},
      { 'retry-after': 'soon' },
      { 'retry-after': '-5' },
      { 'retry-after': 'Sun, 99 Nov 1994 08:50:37 GMT' },
      { ratelimit: '"default;r=0;t=30' },
      { ratelimit: '"default";r=0;t=soon' },
      { ratelimit: 'limit=1, reset=' },
      { 'x-ratelimit-reset': 'tomorrow' },
    ]) {
      expect(answer(429, headers), JSON.stringify(headers)).toEqual({ retryAfterMs: undefined })
    }
  })

  it('does not follow the reset of a limit that has something left', () => {
    expect(answer(429, { ratelimit: '"hourly";r=5;t=900' })).toEqual({ retryAfterMs: undefined })
    expect(answer(429, { ratelimit: 'remaining=5, reset=900' })).toEqual({ retryAfterMs: undefined })
    expect(answer(429, { 'x-ratelimit-reset': '900', 'x-ratelimit-remaining': '5' })).toEqual({
      retryAfterMs: undefined,
    })
  })

  it('is what Retry-After says when other headers say something else', () => {
    const headers = { 'retry-after': '2', ratelimit: '"x";r=0;t=30', 'x-ratelimit-reset': '40' }

    expect(answer(429, headers)).toEqual({ retryAfterMs: 2_000 })
  })

  it("is reckoned from the answer's own date, not from our clock", () => {
    const headers = { date: 'Sun, 06 Nov 1994 09:49:37 GMT', 'retry-after': 'Sun, 06 Nov 1994 09:49:47 GMT' }

    expect(answer(429, headers)).toEqual({ retryAfterMs: 10_000 })
  })

  it('is a second at least, also when the instant has passed', () => {
    expect(answer(429, { 'retry-after': '0' })).toEqual({ retryAfterMs: 1_000 })
    expect(answer(429, { 'retry-after': 'Sun, 06 Nov 1994 08:00:00 GMT' })).toEqual({ retryAfterMs: 1_000 })
  })

  it("is a minute for GitHub's secondary limit that names no time", () => {
    const text = 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.'

    expect(answer(403, {}, text)).toEqual({ retryAfterMs: 60_000 })
    expect(answer(403, { 'retry-after': '5' }, text)).toEqual({ retryAfterMs: 5_000 })
  })
})
