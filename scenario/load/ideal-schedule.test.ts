import { describe, expect, it } from 'vitest'
import { idealStarts, type ScheduledJob } from './ideal-schedule.ts'

const everyMs = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index)
const jobsOf = (tenant: string, count: number, at = 0): ScheduledJob[] => Array(count).fill({ tenant, at })

/** How many slots each tenant got, of the first `slots`. */
function shares(
  jobs: readonly ScheduledJob[],
  slots: number,
  weights?: Record<string, number>,
): Record<string, number> {
  const counts: Record<string, number> = {}
  idealStarts(jobs, everyMs(slots), weights).forEach((start, index) => {
    const { tenant } = jobs[index] as ScheduledJob
    if (start !== undefined) counts[tenant] = (counts[tenant] ?? 0) + 1
  })
  return counts
}

describe('the ideal schedule', () => {
  it('divides slots equally among tenants with work, however much work they have', () => {
    const jobs = [...jobsOf('large', 1_000), ...jobsOf('a', 50), ...jobsOf('b', 50)]

    expect(shares(jobs, 90)).toEqual({ large: 30, a: 30, b: 30 })
  })

  it('gives what one leaves to the others', () => {
    const jobs = [...jobsOf('large', 1_000), ...jobsOf('a', 5), ...jobsOf('b', 50)]

    expect(shares(jobs, 85)).toEqual({ large: 40, a: 5, b: 40 })
  })

  it('divides by weight', () => {
    const jobs = [...jobsOf('heavy', 1_000), ...jobsOf('light', 1_000)]

    expect(shares(jobs, 400, { heavy: 3 })).toEqual({ heavy: 300, light: 100 })
  })

  it('gives the next slot to a tenant that comes back, and no more than its share for having idled', () => {
    const jobs = [...jobsOf('large', 1_000), { tenant: 'a', at: 0 }, ...jobsOf('a', 3, 500)]

    const starts = idealStarts(jobs, everyMs(600)).slice(1_000)

    expect(starts[0]).toBeLessThanOrEqual(1)
    expect(starts[1]).toBeLessThanOrEqual(501)
    expect((starts[3] as number) - (starts[1] as number)).toBe(4)
  })

  it('starts no job before it came, those of one tenant in order, and leaves out what there is no slot for', () => {
    const jobs = [
      { tenant: 'a', at: 5.5 },
      { tenant: 'a', at: 2 },
      { tenant: 'a', at: 9 },
    ]

    expect(idealStarts(jobs, [7, 1, 2])).toEqual([7, 2, undefined])
  })
})
