import { Counter, Gauge, type Registry } from 'prom-client'
import { congestionLevels } from '../engine/congestion.ts'
import type { CongestionSummary, TenantCongestion } from '../engine/congestion-control.ts'
import type { Histogram } from '../store/histogram.ts'
import type { QueueCounts } from '../store/scripts/read-counts.ts'
import { ExposedHistogram } from './exposed-histogram.ts'

/** As many tenants as are named one by one. */
const NAMED = 50
const OTHER_TENANTS = 'other'

/** What is known of a queue at a scrape. */
export interface CongestionReading {
  /** With all tenants that are found to be behind, so that the ones with most waiting jobs are among them. */
  readonly summary: CongestionSummary
  readonly counts: QueueCounts
  readonly backoffs: Histogram
}

/** How far queues and their tenants are behind, and how often they are held back. */
export class CongestionMetrics {
  readonly #level: Gauge<'queue'>
  readonly #tenants: Gauge<'queue' | 'level'>
  readonly #throttles: Gauge<'queue'>
  readonly #avoided: Counter<'queue'>
  readonly #waitingOf: Gauge<'queue' | 'tenant'>
  readonly #levelOf: Gauge<'queue' | 'tenant'>
  readonly #throttlesOf: Gauge<'queue' | 'tenant'>
  readonly #backoffs = new Map<string, Histogram>()

  constructor(registry: Registry) {
    const registers = [registry]
    const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
      new Gauge({ name, help, labelNames, registers })
    this.#level = gauge('sluice_congestion_level', 'How far the queue is behind: 0 is NONE, 4 is CRITICAL.', ['queue'])
    this.#tenants = gauge(
      'sluice_congestion_tenants',
      'Tenants with waiting jobs by how far they are behind, of the 128 that have the most.',
      ['queue', 'level'],
    )
    this.#throttles = gauge(
      'sluice_congestion_throttles_per_job',
      'Times a limit parked a tenant or an upstream pushed a job back, for each job that has ended.',
      ['queue'],
    )
    this.#avoided = new Counter({
      name: 'sluice_congestion_moves_avoided_total',
      help: 'Denials that parked a tenant and left its jobs where they stood.',
      labelNames: ['queue'],
      registers,
    })
    this.#waitingOf = gauge(
      'sluice_tenant_jobs_waiting',
      'Waiting jobs of the 50 tenants that have the most; the tenant other has those of all others.',
      ['queue', 'tenant'],
    )
    this.#levelOf = gauge(
      'sluice_tenant_congestion_level',
      'How far the 50 tenants with most waiting jobs are behind: 0 is NONE, 4 is CRITICAL.',
      ['queue', 'tenant'],
    )
    this.#throttlesOf = gauge(
      'sluice_tenant_throttles_per_job',
      'Throttles of the 50 tenants with most waiting jobs, for each of their jobs that has ended.',
      ['queue', 'tenant'],
    )
    new ExposedHistogram(
      registry,
      {
        name: 'sluice_congestion_backoff_seconds',
        help: 'How long jobs had to wait that an upstream pushed back without saying for how long.',
      },
      () => [...this.#backoffs].map(([queue, histogram]) => [{ queue }, histogram] as const),
    )
  }

  reset(): void {
    for (const metric of [this.#avoided, this.#waitingOf, this.#levelOf, this.#throttlesOf]) metric.reset()
  }

  write(queue: string, { summary, counts, backoffs }: CongestionReading): void {
    this.#level.set({ queue }, congestionLevels.indexOf(summary.level))
    for (const level of congestionLevels) {
      this.#tenants.set({ queue, level }, summary.tenants.filter((tenant) => tenant.level === level).length)
    }
    const { parked, throttled, succeeded, failed, waiting } = counts
    this.#throttles.set({ queue }, (parked + throttled) / Math.max(1, succeeded + failed))
    this.#avoided.inc({ queue }, parked)
    this.#backoffs.set(queue, backoffs)
    this.#writeTenants(queue, summary.tenants, waiting)
  }

  /** All of them together are the queue's waiting jobs, also when some came or went between two questions. */
  #writeTenants(queue: string, tenants: readonly TenantCongestion[], waiting: number): void {
    let rest = waiting
    for (const each of tenants.toSorted((a, b) => b.waiting - a.waiting).slice(0, NAMED)) {
      const { tenant } = each
      // One that bears the name of the rest is counted with it.
      if (tenant === OTHER_TENANTS) continue
      this.#waitingOf.set({ queue, tenant }, each.waiting)
      this.#levelOf.set({ queue, tenant }, congestionLevels.indexOf(each.level))
      this.#throttlesOf.set({ queue, tenant }, each.averageThrottlesPerJob)
      rest -= each.waiting
    }
    this.#waitingOf.set({ queue, tenant: OTHER_TENANTS }, Math.max(0, rest))
  }
}
