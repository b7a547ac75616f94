/** A tenant of the demo, and what it submits. */
export interface DemoTenant {
  readonly name: string
  readonly jobs: number
  readonly weight: number
  /** How long after the first it comes. */
  readonly afterMs: number
}

/**
 * One tenant with a backlog for the whole demo; two small ones that come while it runs. The limit is that of many
 * partner APIs, a few hundred calls a second. Its window is five seconds rather than one so that what the limiter keeps
 * back for the way to the upstream is a small share of it, on a busy machine too.
 */
export const demoPlan = {
  limit: 2_500,
  windowMs: 5_000,
  /** What the way to the upstream may vary by on a machine that does other things as well. */
  jitterMs: 100,
  /** How long the upstream takes to answer. */
  latencyMs: 20,
  concurrency: 50,
  tenants: [
    { name: 'huge', jobs: 9_000, weight: 1, afterMs: 0 },
    { name: 'small-1', jobs: 300, weight: 1, afterMs: 4_000 },
    { name: 'small-2', jobs: 300, weight: 1, afterMs: 8_000 },
  ] satisfies readonly DemoTenant[] as readonly DemoTenant[],
} as const
