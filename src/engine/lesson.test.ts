import { expect, it } from 'vitest'
import { Lessons } from './lesson.ts'

const NOW = 1_757_900_000_000

it.each([
  ['of fetch', new Headers({ 'Retry-After': '5' })],
  ['of node:http', { 'retry-after': '5' }],
  ['as somebody wrote them', { 'Retry-After': '5' }],
  ['that came twice', { 'retry-after': ['2', '5'] }],
])('learns from headers %s', (_, headers) => {
  const lessons = new Lessons()

  expect(lessons.learn({ status: 429, headers }, NOW)).toEqual({ retryAfterMs: 5_000 })
  expect(lessons.lessonFor('github')).toEqual({
    upstream: 'github',
    pushback: { retryAfterMs: 5_000 },
    reading: undefined,
  })
})

it('learns from a response of fetch as it is, and leaves its body alone', async () => {
  const response = new Response('too fast', { status: 429, headers: { 'retry-after': '5' } })

  expect(new Lessons().learn(response, NOW)).toEqual({ retryAfterMs: 5_000 })
  expect(await response.text()).toBe('too fast')
})

it.each([Number.POSITIVE_INFINITY, Number.NaN, -1])('takes a wait of %d for one that nobody knows', (retryAfterMs) => {
  const lessons = new Lessons()
  lessons.pushedBack(retryAfterMs)

  expect(lessons.lessonFor(undefined)?.pushback).toEqual({ retryAfterMs: undefined })
})

it('believes no wait of more than a day', () => {
  const lessons = new Lessons()
  lessons.pushedBack(1e300)

  expect(lessons.lessonFor(undefined)?.pushback).toEqual({ retryAfterMs: 86_400_000 })
})

it('has nothing to tell of an answer without a word about limits', () => {
  const lessons = new Lessons()
  lessons.learn({ status: 200, headers: { etag: '"5"' } }, NOW)

  expect(lessons.lessonFor(undefined)).toBeUndefined()
})

it('tells the last reading and the longest wait of several answers', () => {
  const lessons = new Lessons()
  const left = (remaining: string) => ({ 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': '60' })
  lessons.learn({ status: 200, headers: left('9') }, NOW)
  lessons.learn({ status: 429, headers: { ...left('0'), 'retry-after': '7' } }, NOW)
  lessons.pushedBack(undefined)

  expect(lessons.lessonFor(undefined)).toEqual({
    upstream: '',
    pushback: { retryAfterMs: 7_000 },
    reading: { remaining: 0, resetInMs: 60_000, limit: undefined },
  })
})
