import { checkOptions, integer } from '../assert.ts'
import { fromToken, type Level } from '../store/names.ts'
import type { QueueCounts } from '../store/scripts/read-counts.ts'
import type { WorkerView } from '../store/worker-list.ts'
import type { CongestionLevel } from './congestion.ts'
import type { Backlog, CongestionControl } from './congestion-control.ts'
import type { QueueView } from './fairness.ts'
import type { LimitStatus } from './limit-status.ts'
import type { TenantView } from './tenant-control.ts'

/** A tenant as it stands, and how far it is behind. */
export interface TenantOverview extends Omit<TenantView, 'fairness'> {
  /** In ms since 1970; undefined while it is parked: until one of its jobs ends. */
  readonly parkedUntil: number | undefined
  readonly level: CongestionLevel
  /** Starts a second. */
  readonly speed: number
  /** Until all that waits has started, at this speed. */
  readonly etaMs: number
}

/** A queue at one moment: what a person wants on one screen. JSON holds all of it. */
export interface QueueOverview {
  /** In ms since 1970, by this process's clock. */
  readonly at: number
  readonly name: string
  readonly paused: boolean
  readonly levelsPaused: Readonly<Record<Level, boolean>>
  readonly counts: QueueCounts
  /** How far the whole queue is behind. */
  readonly backlog: Backlog & { readonly activeTenants: number }
  readonly limits: readonly LimitStatus[]
  readonly workers: readonly WorkerView[]
  /**
   * Those that have longest to wait first, then others that run or are paused. At most as many as were asked for: nothing
   * is found by going through all tenants.
   */
  readonly tenants: readonly TenantOverview[]
}

/** What an overview is made of. */
export interface OverviewSource {
  /** Now, in ms since 1970. */
  date(): number
  view(): Promise<QueueView>
  counts(): Promise<QueueCounts>
  workers(): Promise<readonly WorkerView[]>
  tenant(name: string): { view(): Promise<TenantView> }
  readonly limits: { list(): Promise<readonly LimitStatus[]> }
  readonly congestion: Pick<CongestionControl, 'of' | 'summary'>
  /** Tokens of tenants that run or are paused. */
  busyTokens(most: number): Promise<readonly string[]>
}

const rules = { tenants: integer({ min: 1, max: 128, default: 50 }) }

export async function readOverview(source: OverviewSource, options: { tenants?: number }): Promise<QueueOverview> {
  const { tenants: most } = checkOptions('overview', options, rules)
  const [queue, counts, limits, workers, summary, busy] = await Promise.all([
    source.view(),
    source.counts(),
    source.limits.list(),
    source.workers(),
    source.congestion.summary({ limit: most }),
    source.busyTokens(most),
  ])
  const { tenants: behind, worst: _worst, ...backlog } = summary
  const known = new Map(behind.map((congestion) => [congestion.tenant, congestion]))
  const names = [...new Set([...known.keys(), ...busy.map(fromToken)])].slice(0, most)
  const tenants = await Promise.all(
    names.map(async (name): Promise<TenantOverview> => {
      const [view, found] = await Promise.all([
        source.tenant(name).view(),
        known.get(name) ?? source.congestion.of(name),
      ])
      return { ...standing(view), level: found.level, speed: found.speed, etaMs: found.etaMs }
    }),
  )
  const paused = queue.pausedSince !== undefined
  const { high, normal, low } = queue.levelsPausedSince
  const levelsPaused = { high: high !== undefined, normal: normal !== undefined, low: low !== undefined }
  return { at: source.date(), name: queue.name, paused, levelsPaused, counts, backlog, limits, workers, tenants }
}

/** As JSON can hold it: there is no Infinity. */
function standing({ fairness: _fairness, ...view }: TenantView) {
  return { ...view, parkedUntil: view.parkedUntil === Number.POSITIVE_INFINITY ? undefined : view.parkedUntil }
}
