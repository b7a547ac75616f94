/** A tenant of the demo, and what it submits. */
export interface DemoTenant {
  readonly name: string
  readonly jobs: number
  readonly weight: number
  /** How long after the first it comes. */
  readonly afterMs: number
}

/**
 * One tenant with a backlog for the whole demo; two small ones that come while it runs. The limit is that of many partner
 * APIs, some hundred calls a second. Its window is ten seconds rather than one so that what the limiter keeps back for the
 * way to the upstream, and for a machine that does other things, is a small share of it: 4.5 %.
 */
export const demoPlan = {
  limit: 3_000,
  windowMs: 10_000,
  /** By how much the way to the upstream may vary. */
  jitterMs: 250,
  /** A worker that stands still for 0.2 s has lost nothing. */
  burst: 60,
  /** How long the upstream takes to answer. */
  latencyMs: 20,
  concurrency: 40,
  tenants: [
    { name: 'huge', jobs: 7_000, weight: 1, afterMs: 0 },
    { name: 'small-1', jobs: 250, weight: 1, afterMs: 5_000 },
    { name: 'small-2', jobs: 250, weight: 1, afterMs: 10_000 },
  ] satisfies readonly DemoTenant[] as readonly DemoTenant[],
} as const
