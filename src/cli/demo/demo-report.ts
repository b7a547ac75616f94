import type { QueueCounts } from '../../store/scripts/read-counts.ts'
import type { UpstreamCall, UpstreamReport } from '../../testing/upstream.ts'
import { type Backlog, idealFinishes } from './ideal-finish.ts'

/** What the upstream and the queue saw; the figures are computed from nothing else. */
export interface DemoFacts {
  /** What the queue accepted, and when it was given to it, on the clock of the upstream. The first is the huge tenant. */
  readonly backlogs: readonly Backlog[]
  readonly upstream: UpstreamReport
  readonly calls: readonly UpstreamCall[]
  readonly counts: Pick<QueueCounts, 'succeeded' | 'returned' | 'throttled'>
}

interface TenantFigures {
  readonly tenant: string
  readonly jobs: number
  /** From its submit to the answer to its last call. */
  readonly seconds: number
  /** The same under an ideal weighted max-min scheduler that uses the whole limit. */
  readonly idealSeconds: number
  readonly overIdeal: number
}

export interface DemoFigures {
  readonly jobs: number
  readonly violations: number
  /** Jobs that were accepted and whose call the upstream never answered with 200. */
  readonly lost: number
  /** Calls that the upstream answered with 200 although it had done so before. */
  readonly repeated: number
  readonly smallTenantOverIdeal: number
  /** How often a job was taken and put back because of a limit, its own or the upstream's word. */
  readonly throttleMovesPerJob: number
  readonly overIdealPercent: number
  readonly seconds: number
  readonly idealSeconds: number
  readonly busiestWindow: number
  readonly limit: number
  readonly windowMs: number
  readonly tenants: readonly TenantFigures[]
}

export function figuresOf({ backlogs, upstream, calls, counts }: DemoFacts): DemoFigures {
  const jobs = backlogs.reduce((sum, backlog) => sum + backlog.jobs, 0)
  const answered = calls.filter(({ status, answeredAt }) => status === 200 && answeredAt !== undefined)
  const distinct = new Set(answered.map(({ path }) => path)).size
  const ideal = idealFinishes(backlogs, (upstream.limit * 1_000) / upstream.windowMs)
  const startedAt = Math.min(...backlogs.map(({ at }) => at))
  const seconds = (lastAnswer(answered) - startedAt) / 1_000
  const idealSeconds = (Math.max(...ideal.values()) - startedAt) / 1_000
  const tenants = backlogs.map((backlog) => tenantFigures(backlog, answered, ideal.get(backlog.tenant) ?? 0))
  return {
    jobs,
    violations: upstream.violations,
    lost: jobs - distinct,
    repeated: answered.length - distinct,
    smallTenantOverIdeal: Math.max(...tenants.slice(1).map(({ overIdeal }) => overIdeal)),
    throttleMovesPerJob: (counts.returned + counts.throttled) / jobs,
    overIdealPercent: (seconds / idealSeconds - 1) * 100,
    seconds,
    idealSeconds,
    busiestWindow: upstream.busiest,
    limit: upstream.limit,
    windowMs: upstream.windowMs,
    tenants,
  }
}

function tenantFigures(
  { tenant, jobs, at }: Backlog,
  answered: readonly UpstreamCall[],
  idealAt: number,
): TenantFigures {
  const own = answered.filter(({ path }) => path.startsWith(`/${tenant}/`))
  const seconds = (lastAnswer(own) - at) / 1_000
  const idealSeconds = (idealAt - at) / 1_000
  return { tenant, jobs, seconds, idealSeconds, overIdeal: seconds / idealSeconds }
}

function lastAnswer(calls: readonly UpstreamCall[]): number {
  return calls.reduce((latest, { answeredAt }) => Math.max(latest, answeredAt ?? 0), 0)
}

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 4 })
const oneDigit = (value: number) => value.toFixed(1)

/** The report as a person reads it. */
export function reportText(figures: DemoFigures): string {
  const { jobs, violations, lost, throttleMovesPerJob, overIdealPercent, tenants } = figures
  const windowSeconds = figures.windowMs / 1_000
  const rows: [string, string][] = [
    [
      'calls over the limit',
      `${violations} (at most ${numbers.format(figures.limit)} in any ${windowSeconds} s; the busiest had ${numbers.format(figures.busiestWindow)})`,
    ],
    ['jobs lost', `${lost} of ${numbers.format(jobs)}`],
    ...tenants
      .slice(1)
      .map(({ tenant, jobs: own, seconds, idealSeconds, overIdeal }): [string, string] => [
        `${tenant} beside the huge one`,
        `${numbers.format(own)} jobs in ${oneDigit(seconds)} s; ideally ${oneDigit(idealSeconds)} s (× ${overIdeal.toFixed(2)})`,
      ]),
    ['throttle moves per job', numbers.format(throttleMovesPerJob)],
    [
      'time over ideal',
      `${oneDigit(overIdealPercent)} % (${oneDigit(figures.seconds)} s; ideally ${oneDigit(figures.idealSeconds)} s)`,
    ],
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  return [
    'What the upstream and the queue saw:',
    ...rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`),
  ].join('\n')
}
