/** Work of one tenant that is there all at once. */
export interface Backlog {
  readonly tenant: string
  readonly jobs: number
  readonly weight: number
  /** When it came, in ms of any clock. */
  readonly at: number
}

interface Open {
  readonly tenant: string
  readonly weight: number
  left: number
}

/**
 * When an ideal weighted max-min scheduler would have finished each tenant, on the clock of the backlogs: work is a
 * fluid, the rate is divided among the tenants that have some in proportion to their weights, and what a tenant leaves
 * the others get. No real scheduler is faster for every tenant at once.
 */
export function idealFinishes(backlogs: readonly Backlog[], perSecond: number): Map<string, number> {
  const coming = backlogs.toSorted((a, b) => a.at - b.at)
  const finishes = new Map<string, number>()
  const perMs = perSecond / 1_000
  let open: Open[] = []
  let now = coming[0]?.at ?? 0
  while (open.length > 0 || coming.length > 0) {
    while (coming[0] !== undefined && coming[0].at <= now) {
      const { tenant, weight, jobs } = coming.shift() as Backlog
      open.push({ tenant, weight, left: jobs })
    }
    const rates = open.map(({ weight }) => (perMs * weight) / open.reduce((sum, each) => sum + each.weight, 0))
    const nextEnd = Math.min(...open.map(({ left }, index) => now + left / (rates[index] as number)))
    const until = Math.min(nextEnd, coming[0]?.at ?? Number.POSITIVE_INFINITY)
    open.forEach((each, index) => {
      each.left -= (rates[index] as number) * (until - now)
    })
    now = until
    // What floating point leaves of a job is none.
    for (const { tenant, left } of open) if (left < 1e-6) finishes.set(tenant, now)
    open = open.filter(({ left }) => left >= 1e-6)
  }
  return finishes
}
