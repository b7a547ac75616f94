import { expect, it } from 'vitest'
import { PermanentError, ThrottledError } from '../errors.ts'
import { discard, outcomeOf, resultOfReturn, resultOfThrow, throttled } from './outcome.ts'

it.each([undefined, null, 0, 'text', {}, [], { reason: 'x' }, Symbol('x')])(
  'takes the return of %o as success, and keeps it',
  (value) => {
    expect(resultOfReturn(value)).toEqual({ kind: 'succeeded', value })
  },
)

it('takes what a handler answers besides success', () => {
  expect(resultOfReturn(discard('gone'))).toMatchObject({ kind: 'discarded', error: new Error('gone') })
  expect(resultOfReturn(throttled())).toEqual({ kind: 'throttled', retryAfterMs: undefined })
  expect(resultOfReturn(throttled({ retryAfterMs: 5 }))).toEqual({ kind: 'throttled', retryAfterMs: 5 })
})

it('takes what is thrown from deep inside', () => {
  const permanent = new PermanentError('gone')

  expect(resultOfThrow(permanent)).toEqual({ kind: 'discarded', error: permanent })
  expect(resultOfThrow(new ThrottledError({ retryAfterMs: 5 }))).toEqual({ kind: 'throttled', retryAfterMs: 5 })
})

it.each([new Error('x'), 'text', undefined, null, Object.create(null)])(
  'takes any other throw as a failure: %o',
  (error) => {
    expect(resultOfThrow(error)).toEqual({ kind: 'failed', error })
  },
)

it('middleware can tell what a handler returned: a success, a dead letter or a pushback', () => {
  expect([undefined, { status: 200 }, discard('gone'), throttled()].map(outcomeOf)).toEqual([
    'succeeded',
    'succeeded',
    'discarded',
    'throttled',
  ])
})

it('the stack of a discarded job begins where the handler says so, and outcomes are compared by what they say', () => {
  function handler() {
    return discard('gone')
  }

  const { error } = resultOfReturn(handler()) as { error: Error }

  expect(error.stack?.split('\n')[1]).toContain('handler')
  expect(handler()).toEqual(discard('gone'))
  expect(resultOfReturn({ ...handler() })).toMatchObject({ kind: 'discarded', error: { message: 'gone' } })
})
