import type { Metric, MetricObject, Registry } from 'prom-client'
import type { Histogram } from '../store/histogram.ts'

type Labels = Readonly<Record<string, string>>

interface Sample {
  readonly metricName: string
  readonly labels: Record<string, string | number>
  readonly value: number
}

/**
 * Histograms that are kept elsewhere and only read when they are scraped: prom-client's own cost a lookup by their labels
 * with every value, which is too much for every job.
 */
export class ExposedHistogram {
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly aggregator = 'sum'
  readonly #read: () => Iterable<readonly [labels: Labels, histogram: Histogram]>

  /** @param read - The histograms there are now, each with its labels. */
  constructor(
    registry: Registry,
    about: { name: string; help: string },
    read: () => Iterable<readonly [labels: Labels, histogram: Histogram]>,
  ) {
    this.name = about.name
    this.help = about.help
    this.#read = read
    // A registry asks a metric for its name and `get` alone; its type names the classes of prom-client.
    registry.registerMetric(this as unknown as Metric)
  }

  async get(): Promise<MetricObject & { values: Sample[] }> {
    const { name, help, type, aggregator } = this
    const values = [...this.#read()].flatMap(([labels, histogram]) => this.#samples(labels, histogram))
    return { name, help, type, aggregator, values } as unknown as MetricObject & { values: Sample[] }
  }

  #samples(labels: Labels, histogram: Histogram): Sample[] {
    const counts = histogram.cumulated()
    const count = counts.at(-1) ?? 0
    const buckets = [...histogram.bounds, '+Inf' as const].map((le, at) => ({
      metricName: `${this.name}_bucket`,
      labels: { ...labels, le },
      value: counts[at] ?? count,
    }))
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels: { ...labels }, value: histogram.sum },
      { metricName: `${this.name}_count`, labels: { ...labels }, value: count },
    ]
  }
}
