import { describe, expect, it } from 'vitest'
import { countTicks, planTicks } from './missed.ts'
import type { MissedRule } from './schedule-input.ts'
import { type Timetable, timetableOf } from './timetable.ts'

const everyMinute = timetableOf({ everyMs: 60_000, anchor: 0 })
const minutes = (...counts: readonly number[]) => counts.map((count) => count * 60_000)

/** What becomes of a schedule that was due at minute 10 and is looked at so many minutes later. */
function plan(rule: MissedRule, late: number, timetable: Timetable = everyMinute) {
  return planTicks(timetable, rule, { due: 600_000, now: 600_000 + late * 60_000 })
}

it.each(['one', 'all', 'skip'] as const)('meets a tick that is in time (%s)', async (rule) => {
  expect(await plan(rule, 0.01)).toEqual({ ticks: [600_000], missed: 0, next: 660_000 })
})

it('makes up for the latest of those that passed, where one is', async () => {
  expect(await plan('one', 3.5)).toEqual({ ticks: minutes(13), missed: 3, next: 840_000 })
})

it('makes up for all of them, where all are', async () => {
  expect(await plan('all', 3.5)).toEqual({ ticks: minutes(10, 11, 12, 13), missed: 0, next: 840_000 })
})

describe('where missed ticks are skipped', () => {
  const everyHour = timetableOf({ everyMs: 3_600_000, anchor: 600_000 })

  it('meets one that is up to a minute late', async () => {
    expect(await plan('skip', 1, everyHour)).toEqual({ ticks: [600_000], missed: 0, next: 4_200_000 })
  })

  it('meets none that is later', async () => {
    expect(await plan('skip', 1.01, everyHour)).toEqual({ ticks: [], missed: 1, next: 4_200_000 })
  })

  it('meets the latest of several if that is not too late', async () => {
    expect(await plan('skip', 3.5)).toEqual({ ticks: minutes(13), missed: 3, next: 840_000 })
  })
})

describe('after a long outage', () => {
  /** The plans of all steps until nothing is due any more. */
  async function allPlans(rule: MissedRule, now: number, timetable: Timetable) {
    let made: number[] = []
    let [steps, missed] = [0, 0]
    for (let due: number | undefined = 600_000; due !== undefined && due <= now; steps += 1) {
      const step = await planTicks(timetable, rule, { due, now })
      made = made.concat(step.ticks)
      missed += step.missed
      due = step.next
    }
    return { steps, made, missed }
  }

  it('counts every tick of a pattern, in several steps', async () => {
    const perSecond = timetableOf({ cron: '* * * * * *', timeZone: 'UTC' })

    const { steps, made, missed } = await allPlans('one', 600_000 + 4_500_000, perSecond)

    expect([made, missed, steps]).toEqual([[5_100_000], 4_500, 3])
  })

  it('counts millions of elapsed intervals at once', async () => {
    const often = timetableOf({ everyMs: 100, anchor: 0 })

    const { made, missed, steps } = await allPlans('one', 600_000 + 86_400_000, often)

    expect([made, missed, steps]).toEqual([[87_000_000], 864_000, 1])
  })

  it('makes up for the latest thousand, the oldest of them first and a hundred at once, where all are', async () => {
    const { made, missed, steps } = await allPlans('all', 600_000 + 5_000 * 60_000, everyMinute)

    expect(missed).toBe(4_001)
    expect(made).toEqual(Array.from({ length: 1_000 }, (_, index) => (4_011 + index) * 60_000))
    expect(steps).toBe(11)
  })
})

it('counts all that have no job yet, of a pattern too', async () => {
  const perSecond = timetableOf({ cron: '* * * * * *', timeZone: 'UTC' })

  expect(await countTicks(everyMinute, { due: 600_000, now: 600_000 + 3.5 * 60_000 })).toBe(4)
  expect(await countTicks(perSecond, { due: 600_000, now: 600_000 + 2_500_000 })).toBe(2_501)
})

it('ends with a timetable that ends', async () => {
  const once: Timetable = { stepsAtOnce: 10, next: (after) => (after < 600_000 ? 600_000 : undefined) }

  expect(await plan('one', 5, once)).toEqual({ ticks: [600_000], missed: 0, next: undefined })
})
