import { expect, it } from 'vitest'
import { NewestKnown } from './newest-known.ts'

const A = { epoch: 7, at: 'a' }
const B = { epoch: 2, at: 'b' }
const C = { epoch: 1, at: 'c' }

function knowing(first: typeof A) {
  let now = 0
  const known = new NewestKnown<typeof A>({
    areAgreed: (answers) => answers.every(({ at }) => at === answers[0]?.at),
    now: () => now,
  })
  known.believe([first], false)
  const pass = (ms: number) => {
    now += ms
  }
  return { known, pass }
}

it('believes the latest epoch, and what is said later of the same', () => {
  const { known } = knowing(B)

  expect(known.believe([C, A], false)).toBe(A)
  expect(known.believe([{ ...A, at: 'd' }], false)).toMatchObject({ at: 'd' })
})

it('does not go back to what some say who have not heard the news, though it cannot be reached for the moment', () => {
  const { known, pass } = knowing(A)
  known.lost()
  pass(29_000)

  expect(known.believe([B], false)).toBe(A)
})

it('forgets it when all say less, the one that told it among them', () => {
  const { known } = knowing(A)

  expect(known.believe([B, B, C], true)).toBe(B)
  expect(known.believe([C], false)).toBe(B)
})

it('forgets it when it has not been reached for long and all who answer agree on another', () => {
  const { known, pass } = knowing(A)
  known.lost()
  pass(20_000)
  known.lost()
  pass(10_000)

  expect(known.believe([B, C], false)).toBe(A)
  expect(known.believe([B, B], false)).toBe(B)
})

it('counts from the last time it was reached', () => {
  const { known, pass } = knowing(A)
  known.lost()
  pass(20_000)
  known.reached()
  known.lost()
  pass(20_000)

  expect(known.believe([B], false)).toBe(A)
})
