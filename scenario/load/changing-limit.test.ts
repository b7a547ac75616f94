import { describe, expect, it } from 'vitest'
import { ChangingLimit } from './changing-limit.ts'

function limit(...changes: { value: number; askedAt: number; doneAt: number }[]): ChangingLimit {
  const changing = new ChangingLimit({ wayMs: 100 })
  for (const { value, ...when } of changes) changing.changed(value, when)
  return changing
}

const tenThenTwo = () => limit({ value: 10, askedAt: 0, doneAt: 0 }, { value: 2, askedAt: 5_000, doneAt: 5_010 })

describe('a limit that changes', () => {
  it('allows what was in force, and the old value until a grant of it has arrived', () => {
    expect(tenThenTwo().largest({ from: 4_000, to: 4_900 })).toBe(10)
    expect(tenThenTwo().largest({ from: 5_109, to: 5_500 })).toBe(10)
    expect(tenThenTwo().largest({ from: 5_111, to: 5_500 })).toBe(2)
    expect(tenThenTwo().largest({ from: -200, to: -100 })).toBe(0)
  })

  it('allows a larger value from when it was asked for', () => {
    const twoThenTen = limit({ value: 2, askedAt: 0, doneAt: 0 }, { value: 10, askedAt: 5_000, doneAt: 5_010 })

    expect(twoThenTen.largest({ from: 4_000, to: 4_999 })).toBe(2)
    expect(twoThenTen.largest({ from: 4_000, to: 5_000 })).toBe(10)
  })

  it('finds the window that held too many under what was in force in it', () => {
    const times = [0, 100, 200, 6_000, 6_100, 6_999, 7_000]

    const inTime = tenThenTwo().busiestWindow(times, 900)
    const late = tenThenTwo().busiestWindow(times, 1_000)

    expect(inTime.overLimit).toBe(1)
    expect(late).toEqual({ overLimit: 1.5, count: 3, allowed: 2, first: 6_000, last: 6_999 })
  })

  it('finds too many calls at once; those that were under way when it was lowered may end', () => {
    const calls = (count: number, from: number, to: number) => Array(count).fill({ from, to })

    expect(tenThenTwo().mostAtOnceOverLimit([...calls(10, 4_900, 5_200), ...calls(2, 5_200, 5_300)])).toBe(1)
    expect(tenThenTwo().mostAtOnceOverLimit([...calls(3, 4_900, 5_300), ...calls(1, 5_200, 5_300)])).toBe(2)
  })
})
