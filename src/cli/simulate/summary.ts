import type { FloodReport, LimitReport, SimulationReport, TenantReport } from '../../simulate/report.ts'
import { sayDuration } from '../duration.ts'

const numbers = new Intl.NumberFormat('en')
/** Further floods are in the table. */
const FLOODS_TOLD = 3
/** From here on a limit, or the hands, are what everything waits for. */
const USED_UP = 0.97

/** The findings, one sentence each, what matters most first. */
export function summarize(report: SimulationReport): string[] {
  return [
    ...report.floods
      .toSorted((a, b) => b.jobs - a.jobs)
      .slice(0, FLOODS_TOLD)
      .map((flood) => tellFlood(flood, report)),
    tellOthers(report),
    ...tellBounds(report),
    tellLeft(report),
    ...(report.jobs.failed > 0 ? [`${numbers.format(report.jobs.failed)} jobs become dead letters.`] : []),
  ]
}

/** As precise as it matters: `85 ms`, `1.2 s`, `3 h 12 min`. */
export function sayWait(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)} ms`
  return Math.round(ms / 100) < 600 ? `${(ms / 1_000).toFixed(1)} s` : sayDuration(ms)
}

export function percent(share: number): string {
  const value = share * 100
  return `${value > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} %`
}

function tellFlood({ tenant, jobs, tookMs, left }: FloodReport, { tookMs: all }: SimulationReport): string {
  const flood = `The flood of ${tenant} (${numbers.format(jobs)} jobs)`
  if (tookMs !== null) return `${flood} ends after ${sayWait(tookMs)}.`
  return `${flood} does not end within ${sayDuration(all)}: ${numbers.format(left)} of them are left.`
}

/** Those who have no flood of their own: what do they notice? */
export function tellOthers({ floods, tenants }: SimulationReport): string {
  const flooding = new Set(floods.map(({ tenant }) => tenant))
  const slowest = slowestOf(tenants.filter(({ tenant }) => !flooding.has(tenant)))
  if (slowest) return tellSlowest(slowest, flooding.size > 0)
  const all = slowestOf(tenants)
  if (!all) return 'No job arrives.'
  const least = isAtLeast(all) ? 'at least ' : ''
  return `The longest wait at p99 is ${least}${sayWait(all.wait.p99Ms)} (${all.tenant}).`
}

function tellSlowest(slowest: TenantReport, hasFlood: boolean): string {
  const { tenant, wait, jobs } = slowest
  const p99 = sayWait(wait.p99Ms)
  if (!isAtLeast(slowest)) return `${hasFlood ? 'Nobody else' : 'Nobody'} waits more than ${p99} at p99 (${tenant}).`
  const who = hasFlood ? `Of the others ${tenant}` : tenant
  const never = `${numbers.format(wait.unstarted)} of its ${numbers.format(jobs.submitted)} jobs never start`
  return `${who} waits longest, at least ${p99} at p99: ${never}${wait.unstarted === 1 ? 's' : ''}.`
}

function isAtLeast({ wait }: TenantReport): boolean {
  return wait.atLeast.includes('p99Ms')
}

function slowestOf(tenants: readonly TenantReport[]): TenantReport | undefined {
  const withJobs = tenants.filter(({ jobs }) => jobs.submitted > 0)
  return withJobs.toSorted((a, b) => b.wait.p99Ms - a.wait.p99Ms)[0]
}

/** What holds everything up at its busiest. */
function tellBounds({ hands, limits }: SimulationReport): string[] {
  const full = limits.filter(({ used }) => used.peak >= USED_UP)
  const bounds = full.map(
    (limit) => `The limit ${nameOf(limit)} is used up at its peak, ${percent(limit.used.average)} on average.`,
  )
  if (hands.used.peak >= USED_UP) {
    const average = percent(hands.used.average)
    bounds.push(
      `The ${hands.count} hands are all busy at their peak, ${average} on average: more of them would help then.`,
    )
  }
  return bounds
}

export function nameOf({ name, scope, group }: LimitReport): string {
  if (group !== null) return `${name} of ${group}`
  return scope === 'queue' || scope === name ? name : `${name} (${scope})`
}

function tellLeft({ jobs, tookMs }: SimulationReport): string {
  const done = `${numbers.format(jobs.succeeded + jobs.failed)} of ${numbers.format(jobs.submitted)} jobs`
  if (jobs.left === 0) return `All ${numbers.format(jobs.submitted)} jobs are done after ${sayDuration(tookMs)}.`
  return `${done} are done after ${sayDuration(tookMs)}; ${numbers.format(jobs.left)} are left.`
}
