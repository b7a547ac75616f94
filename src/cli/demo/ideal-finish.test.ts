import { describe, expect, it } from 'vitest'
import { idealFinishes } from './ideal-finish.ts'

const rounded = (finishes: Map<string, number>) =>
  Object.fromEntries([...finishes].map(([tenant, at]) => [tenant, Math.round(at)]))

describe('the ideal scheduler', () => {
  it('gives a tenant that is alone the whole rate', () => {
    const finishes = idealFinishes([{ tenant: 'a', jobs: 500, weight: 1, at: 1_000 }], 100)

    expect(rounded(finishes)).toEqual({ a: 6_000 })
  })

  it('shares the rate while two have work, and gives the rest what the first leaves', () => {
    const finishes = idealFinishes(
      [
        { tenant: 'large', jobs: 1_000, weight: 1, at: 0 },
        { tenant: 'small', jobs: 100, weight: 1, at: 2_000 },
      ],
      100,
    )

    expect(rounded(finishes)).toEqual({ small: 4_000, large: 11_000 })
  })

  it('divides by weight', () => {
    const finishes = idealFinishes(
      [
        { tenant: 'large', jobs: 900, weight: 1, at: 0 },
        { tenant: 'heavy', jobs: 300, weight: 3, at: 0 },
      ],
      100,
    )

    expect(rounded(finishes)).toEqual({ heavy: 4_000, large: 12_000 })
  })

  it('waits for work that comes after a gap', () => {
    const finishes = idealFinishes(
      [
        { tenant: 'a', jobs: 100, weight: 1, at: 0 },
        { tenant: 'b', jobs: 100, weight: 1, at: 5_000 },
      ],
      100,
    )

    expect(rounded(finishes)).toEqual({ a: 1_000, b: 6_000 })
  })
})
