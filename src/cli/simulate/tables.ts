import type { LimitReport, SimulationReport, TenantFigures, WaitFigures, WaitName } from '../../simulate/report.ts'
import { type Cell, table } from '../output.ts'
import { nameOf, percent, sayWait } from './summary.ts'

/** The figures of a simulation as a person reads them. @param top - So many tenants at the most. */
export function tablesOf(report: SimulationReport, top: number): string {
  const parts = [tenantTable(report, top)]
  if (report.floods.length > 1) parts.push(floodTable(report, top))
  parts.push(limitTable(report, top))
  return parts.join('\n\n')
}

/** Groups as one row; with fewer tenants than fit, each of them. The slowest first. */
function tenantTable({ groups, tenants, wait, fairness }: SimulationReport, top: number): string {
  const rows =
    tenants.length <= top
      ? tenants.map((each) => ({ name: each.tenant, figures: each }))
      : groups.map((each) => ({
          name: each.tenants === 1 ? each.group : `${each.group} × ${each.tenants}`,
          figures: each,
        }))
  const sorted = rows.toSorted((a, b) => b.figures.wait.p99Ms - a.figures.wait.p99Ms)
  const heads = ['tenant', 'jobs', 'done', 'left', 'mean', 'p50', 'p95', 'p99', 'max', 'took', 'received', 'entitled']
  const shown = sorted.slice(0, top).map(({ name, figures }) => tenantRow(name, figures))
  const more = sorted.length > top ? `\n… and ${sorted.length - top} more: see --top and --json` : ''
  const jain = fairness === null ? '' : `\nFairness (Jain's index of received by entitled): ${fairness.toFixed(3)}`
  return `${table(heads, shown)}${more}${tellUnstarted(wait)}${jain}`
}

/** What the sign before some of the waits means. */
function tellUnstarted({ unstarted }: WaitFigures): string {
  if (unstarted === 0) return ''
  const jobs =
    unstarted === 1 ? '1 job that never starts counts' : `${unstarted.toLocaleString('en')} jobs that never start count`
  return `\n≥ at least: ${jobs} with the wait until the end`
}

const waitNames: readonly WaitName[] = ['meanMs', 'p50Ms', 'p95Ms', 'p99Ms', 'maxMs']

function tenantRow(name: string, { jobs, wait, tookMs, received, entitled }: TenantFigures): Cell[] {
  const waits = waitNames.map((each) => `${wait.atLeast.includes(each) ? '≥ ' : ''}${sayWait(wait[each])}`)
  const took = tookMs === null ? undefined : sayWait(tookMs)
  return [
    name,
    jobs.submitted,
    jobs.succeeded + jobs.failed,
    jobs.left,
    ...waits,
    took,
    percent(received),
    percent(entitled),
  ]
}

function floodTable({ floods }: SimulationReport, top: number): string {
  const rows = floods.slice(0, top).map(({ tenant, jobs, atMs, tookMs, left }): Cell[] => {
    return [tenant, jobs, sayWait(atMs), tookMs === null ? undefined : sayWait(tookMs), left]
  })
  return table(['flood of', 'jobs', 'at', 'took', 'left'], rows)
}

/** Those that are used most, in the order of the plan. */
function limitTable({ limits, hands }: SimulationReport, top: number): string {
  const most = new Set(limits.toSorted((a, b) => b.used.peak - a.used.peak).slice(0, top))
  const rows = limits
    .filter((limit) => most.has(limit))
    .map((limit): Cell[] => {
      const { kind, used } = limit
      return [nameOf(limit), kind, rateOf(limit), percent(used.average), percent(used.peak)]
    })
  const { average, peak } = hands.used
  rows.push([`${hands.count} hands`, 'workers', undefined, percent(average), percent(peak)])
  return table(['limit', 'kind', 'grants', 'used', 'peak'], rows)
}

/** By the second, unless that is next to nothing. */
function rateOf({ perSecond }: LimitReport): string | undefined {
  if (perSecond === null) return undefined
  if (perSecond >= 0.1) return `${shortNumber(perSecond)}/s`
  return perSecond * 3_600 >= 0.1 ? `${shortNumber(perSecond * 3_600)}/h` : `${shortNumber(perSecond * 86_400)}/d`
}

function shortNumber(value: number): string {
  return value.toLocaleString('en', { maximumSignificantDigits: 4 })
}
