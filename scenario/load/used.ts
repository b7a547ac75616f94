import type { Span } from '../../test/support/arrivals.ts'

/** How many of `times` lie in the span. */
export function countIn(times: readonly number[], { from, to }: Span): number {
  return times.filter((time) => time >= from && time < to).length
}

/** How much of `max` at once was used over the span, from 0 to 1; more than `max` counts as all of it. */
export function occupancy(calls: readonly Span[], max: number, { from, to }: Span): number {
  const edges = calls.flatMap((call) => {
    const [start, end] = [Math.max(call.from, from), Math.min(call.to, to)]
    return start < end
      ? [
          { at: start, change: 1 },
          { at: end, change: -1 },
        ]
      : []
  })
  edges.sort((a, b) => a.at - b.at)
  let open = 0
  let used = 0
  let since = from
  for (const { at, change } of [...edges, { at: to, change: 0 }]) {
    used += Math.min(open, max) * (at - since)
    open += change
    since = at
  }
  return used / (max * (to - from))
}
