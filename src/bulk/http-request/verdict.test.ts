import { describe, expect, it } from 'vitest'
import { discard, throttled } from '../../engine/outcome.ts'
import { UpstreamError } from '../../errors.ts'
import type { AnswerHeaders } from '../../limits/answer-headers.ts'
import { isExpected, verdictOn } from './verdict.ts'

const verdict = (status: number, headers: AnswerHeaders = {}, text = '') =>
  verdictOn('api.test', { status, headers, text }, ['2xx'])

it.each([
  [200, ['2xx'], true],
  [299, ['2xx'], true],
  [404, ['2xx', 404], true],
  [429, ['4xx'], true],
  [404, ['2xx'], false],
  [201, [200], false],
] as const)('%i is among %o: %s', (status, expected, answer) => expect(isExpected(status, expected)).toBe(answer))

describe('an answer that was not expected', () => {
  it.each([
    [429, {}, ''],
    [403, { 'x-ratelimit-remaining': '0' }, ''],
    [403, {}, 'API rate limit exceeded'],
  ])('pushes back without a time: %i %o', (status, headers, text) => {
    expect(verdict(status, headers, text)).toEqual(throttled())
  })

  it.each([429, 403, 503])('pushes back with a time: %i with Retry-After', (status) => {
    expect(verdict(status, { 'retry-after': '3' })).toEqual(throttled({ retryAfterMs: 3_000 }))
  })

  it.each([408, 425, 500, 501, 502, 503, 504, 599])('is tried again: %i', (status) => {
    expect(() => verdict(status)).toThrow(
      expect.objectContaining({ code: 'SLUICE_UPSTREAM', host: 'api.test', status, name: UpstreamError.name }),
    )
  })

  it.each([301, 304, 400, 401, 403, 404, 409, 410, 422, 451])('ends the job: %i', (status) => {
    expect(verdict(status)).toEqual(
      discard(`api.test answered ${status}, not 2xx; asking again would not change that.`),
    )
  })

  it('has a reason whose first line is the same for all that fail alike, and what the upstream said below', () => {
    expect(verdict(422, {}, ' {"error":"no such user 17"}\n')).toEqual(
      discard('api.test answered 422, not 2xx; asking again would not change that.\n{"error":"no such user 17"}'),
    )
    expect(() => verdict(500, {}, 'x'.repeat(1_000))).toThrow(`api.test answered 500, not 2xx\n${'x'.repeat(300)}`)
  })
})
