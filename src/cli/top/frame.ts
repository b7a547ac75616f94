import type { QueueOverview } from '../../index.ts'

/** What happens in a queue each second, from what it had counted at two moments. */
interface Rates {
  readonly submitted: number
  readonly started: number
  readonly succeeded: number
  /** Became dead letters. */
  readonly failed: number
  /** Pushed back by an upstream, or tried again. */
  readonly again: number
}

/** A queue as it is shown. */
export interface Frame extends QueueOverview {
  /** Undefined in the first, which has nothing to be compared with. */
  readonly perSecond: Rates | undefined
}

const SHORTEST_MS = 100

/** @param before - Of the same queue; one that was just read says nothing of rates. */
export function frameOf(overview: QueueOverview, before: Frame | undefined): Frame {
  return { ...overview, perSecond: before && ratesBetween(before, overview) }
}

function ratesBetween(before: Frame, after: QueueOverview): Rates | undefined {
  const ms = after.at - before.at
  if (ms < SHORTEST_MS) return before.perSecond
  const rate = (...names: (keyof QueueOverview['counts'])[]) => {
    const grown = names.reduce((sum, name) => sum + after.counts[name] - before.counts[name], 0)
    // A store that was emptied meanwhile counts from nothing.
    return Math.max(0, grown / (ms / 1_000))
  }
  return {
    submitted: rate('submitted'),
    started: rate('claimed'),
    succeeded: rate('succeeded'),
    failed: rate('failed'),
    again: rate('throttled', 'retried'),
  }
}
