import { describe, expect, it } from 'vitest'
import type { UpstreamCall } from '../../testing/upstream.ts'
import { type DemoFacts, figuresOf, reportText } from './demo-report.ts'

/** Calls of one tenant, evenly from `from` to `to`; each answered at once. */
function calls(tenant: string, count: number, { from, to }: { from: number; to: number }): UpstreamCall[] {
  return Array.from({ length: count }, (_, index) => {
    const at = from + ((index + 1) * (to - from)) / count
    return { path: `/${tenant}/${index}`, at, answeredAt: at, status: 200 as const }
  })
}

/** 1,000 jobs of a huge tenant and 100 of a small one at 100/s, exactly as the ideal scheduler would do them. */
const ideal: DemoFacts = {
  backlogs: [
    { tenant: 'huge', jobs: 1_000, weight: 1, at: 0 },
    { tenant: 'small', jobs: 100, weight: 1, at: 2_000 },
  ],
  upstream: { calls: 1_100, violations: 0, busiest: 100, limit: 100, windowMs: 1_000 },
  calls: [...calls('huge', 1_000, { from: 0, to: 11_000 }), ...calls('small', 100, { from: 2_000, to: 4_000 })],
  counts: { succeeded: 1_100, returned: 0, throttled: 0 },
}

describe('the figures of the demo', () => {
  it('are perfect when the work was done as an ideal scheduler would', () => {
    expect(figuresOf(ideal)).toMatchObject({
      violations: 0,
      lost: 0,
      repeated: 0,
      smallTenantOverIdeal: 1,
      throttleMovesPerJob: 0,
      overIdealPercent: 0,
      seconds: 11,
      idealSeconds: 11,
    })
  })

  it('show a small tenant that finished late', () => {
    const late = calls('small', 100, { from: 2_000, to: 5_000 })

    const { smallTenantOverIdeal } = figuresOf({ ...ideal, calls: [...ideal.calls.slice(0, 1_000), ...late] })

    expect(smallTenantOverIdeal).toBe(1.5)
  })

  it('show a job whose call never came, and one that was refused', () => {
    const refused = ideal.calls.map((call, index) => (index === 7 ? { ...call, status: 429 as const } : call))

    expect(figuresOf({ ...ideal, calls: ideal.calls.slice(1) }).lost).toBe(1)
    expect(figuresOf({ ...ideal, calls: refused }).lost).toBe(1)
  })

  it('show a call that was made twice', () => {
    const again = ideal.calls[3] as UpstreamCall

    expect(figuresOf({ ...ideal, calls: [again, ...ideal.calls] })).toMatchObject({ repeated: 1, lost: 0 })
  })

  it('show jobs that were moved because of limits, and time lost', () => {
    const figures = figuresOf({
      ...ideal,
      calls: ideal.calls.map((call) => ({ ...call, answeredAt: (call.answeredAt ?? 0) * 1.1 })),
      counts: { succeeded: 1_100, returned: 20, throttled: 2 },
    })

    expect(figures.throttleMovesPerJob).toBe(0.02)
    expect(figures.overIdealPercent).toBeCloseTo(10)
  })

  it('are told in words', () => {
    expect(reportText(figuresOf(ideal))).toBe(
      [
        'What the upstream and the queue saw:',
        '  calls over the limit       0 (at most 100 in any 1 s; the busiest had 100)',
        '  jobs lost                  0 of 1,100',
        '  small beside the huge one  100 jobs in 2.0 s; ideally 2.0 s (× 1.00)',
        '  throttle moves per job     0',
        '  time over ideal            0.0 % (11.0 s; ideally 11.0 s)',
      ].join('\n'),
    )
  })
})
