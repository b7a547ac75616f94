import { group, type Rule, show } from '../assert.ts'
import { formOf, time } from './plan-rules.ts'
import type { Random } from './random.ts'

/**
 * How long a job runs: always the same (`"80ms"`), evenly between two times, or as calls to an upstream mostly are: many near
 * the median, a few far above it (lognormal by median and 99th percentile).
 */
export type ServiceTime = string | { from: string; to: string } | { p50: string; p99: string }

export interface Service {
  /** In µs. */
  draw(random: Random): number
  readonly meanUs: number
}

/** Of the standard normal distribution. */
const NORMAL_P99 = 2.326347874040841

export const serviceRule: Rule<Service> = (value, path, report) => {
  if (typeof value === 'string') return constant(time(value, path, report))
  switch (formOf(value, ['p50', 'p99', 'from', 'to'])) {
    case 'p50':
    case 'p99': {
      const { p50, p99 } = group({ p50: time, p99: time })(value, path, report)
      if (p50 > p99) report(path, 'must have a p99 that is no less than its p50')
      return lognormal(p50, p99)
    }
    case 'from':
    case 'to': {
      const { from, to } = group({ from: time, to: time })(value, path, report)
      if (from > to) report(path, 'must have a from that is no more than its to')
      return uniform(from, to)
    }
    case undefined:
      report(path, `must be a time such as "80ms", {"from","to"} or {"p50","p99"}, not ${show(value)}`)
      return constant(0)
  }
}

export function constant(us: number): Service {
  return { draw: () => us, meanUs: us }
}

function uniform(from: number, to: number): Service {
  return { draw: (random) => Math.round(from + (to - from) * random.next()), meanUs: (from + to) / 2 }
}

function lognormal(p50: number, p99: number): Service {
  const sigma = p50 > 0 ? Math.log(p99 / p50) / NORMAL_P99 : 0
  return {
    draw: (random) => Math.round(p50 * Math.exp(sigma * random.normal())),
    meanUs: p50 * Math.exp(sigma ** 2 / 2),
  }
}
