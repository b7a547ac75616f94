import { Counter, Gauge, type Registry } from 'prom-client'
import type { LimitStatus } from '../engine/limit-status.ts'
import type { LimitCount } from '../store/scripts/read-counts.ts'

const labelNames = ['queue', 'scope', 'limit'] as const

/** How limits of queues and levels stand, and what they and the tenants' limits have granted and denied. */
export class LimitMetrics {
  readonly #rate: Gauge<(typeof labelNames)[number]>
  readonly #remaining: Gauge<(typeof labelNames)[number]>
  readonly #used: Gauge<(typeof labelNames)[number]>
  readonly #closed: Gauge<(typeof labelNames)[number]>
  readonly #granted: Counter<(typeof labelNames)[number]>
  readonly #denied: Counter<(typeof labelNames)[number] | 'reason'>

  constructor(registry: Registry) {
    const registers = [registry]
    const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers })
    this.#rate = gauge('sluice_limit_rate_per_second', 'What a bucket grants at present when it is always asked.')
    this.#remaining = gauge('sluice_limit_remaining_permits', 'What a limit could grant now.')
    this.#used = gauge('sluice_limit_used_permits', 'What of a limit is used now.')
    this.#closed = gauge(
      'sluice_limit_closed_until_seconds',
      'Until when a limit grants nothing, in seconds since 1970; 0 while it grants.',
    )
    this.#granted = new Counter({
      name: 'sluice_limit_granted_permits_total',
      help: 'Permits, or slots, that a limit has granted, those given back unused included.',
      labelNames,
      registers,
    })
    this.#denied = new Counter({
      name: 'sluice_limit_denied_total',
      help: 'Times a limit had nothing for somebody in line.',
      labelNames: [...labelNames, 'reason'],
      registers,
    })
  }

  reset(): void {
    for (const metric of [this.#rate, this.#remaining, this.#used, this.#closed, this.#granted, this.#denied]) {
      metric.reset()
    }
  }

  write(queue: string, limits: readonly LimitStatus[], counts: readonly LimitCount[]): void {
    for (const limit of limits) {
      const labels = { queue, scope: limit.scope, limit: limit.name }
      if (limit.effectivePerSecond !== undefined) this.#rate.set(labels, limit.effectivePerSecond)
      this.#remaining.set(labels, limit.remaining)
      this.#used.set(labels, limit.used)
      this.#closed.set(labels, (limit.closedUntil ?? 0) / 1000)
    }
    for (const { scope, limit, reason, count } of counts) {
      // A limit that was taken off is forgotten; what tenants' limits have counted stays.
      const stands = scope === 'tenant' || limits.some((each) => each.scope === scope && each.name === limit)
      if (!stands) continue
      if (reason === undefined) this.#granted.inc({ queue, scope, limit }, count)
      else this.#denied.inc({ queue, scope, limit, reason }, count)
    }
  }
}
