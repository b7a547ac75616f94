/** Something that took place from `from` to `to`, in milliseconds of any one clock. */
export interface Span {
  from: number
  to: number
}

/** The busiest window: how many times lie in it, and the first and last of them. */
export interface Busiest {
  count: number
  first: number
  last: number
}

/** The most times in any window [t, t + windowMs), wherever it starts. `times` is sorted. */
export function busiestWindow(times: readonly number[], windowMs: number): Busiest {
  let best: Busiest = { count: 0, first: 0, last: 0 }
  let start = 0
  times.forEach((time, end) => {
    while (time - (times[start] as number) >= windowMs) start++
    const count = end - start + 1
    if (count > best.count) best = { count, first: times[start] as number, last: time }
  })
  return best
}

/** The most spans open at one instant; one that ends when another begins does not overlap it. */
export function mostAtOnce(spans: readonly Span[]): { count: number; at: number } {
  const edges = spans.flatMap(({ from, to }) => [
    { at: from, change: 1 },
    { at: to, change: -1 },
  ])
  edges.sort((a, b) => a.at - b.at || a.change - b.change)
  let open = 0
  let best = { count: 0, at: 0 }
  for (const { at, change } of edges) {
    open += change
    if (open > best.count) best = { count: open, at }
  }
  return best
}

/** The share of a limit of `permits` per `windowMs` that was used between the first and the last of `times`. */
export function usedShare(times: readonly number[], limit: { permits: number; windowMs: number }): number {
  const first = times[0]
  const last = times.at(-1)
  if (first === undefined || last === undefined || first === last) return 0
  return (times.length - 1) / (((last - first) / limit.windowMs) * limit.permits)
}
