import { busiestWindow, mostAtOnce } from '../arrivals.ts'
import type { CheckerOptions, Violation } from '../checker.ts'
import { type Effect, faultsBetween, type Lives } from './lives.ts'

/** C7: no more arrivals at the upstream in any sliding window than the limit says, and none while it is closed. */
export function rate(lives: Lives, { limits = [], closed = [] }: CheckerOptions): Violation[] {
  const tooMany = limits.flatMap(({ permits, windowMs, tenant }): Violation[] => {
    const effects = lives.effects.filter((effect) => tenant === undefined || effect.tenant === tenant)
    const times = effects.map(({ at }) => at).sort((a, b) => a - b)
    const { count, first, last } = busiestWindow(times, windowMs)
    if (count <= permits) return []
    return [
      {
        check: 'C7',
        message: `${count} arrivals${tenant === undefined ? '' : ` of ${tenant}`} within ${windowMs} ms; the limit is ${permits}`,
        events: effects.filter(({ at }) => at >= first && at <= last),
      },
    ]
  })
  const inside = closed.flatMap((span): Violation[] => {
    const events = lives.effects.filter(({ at }) => at >= span.from && at < span.to)
    return events.length === 0 ? [] : [{ check: 'C7', message: 'arrivals while the limit was closed', events }]
  })
  return [...tooMany, ...inside]
}

/** C8: no more calls at once than the limit says, those of workers that had lost their lease left out. */
export function concurrency(lives: Lives, { concurrency: limits = [], leaseMs }: CheckerOptions): Violation[] {
  return limits.flatMap(({ max, tenant }): Violation[] => {
    const effects = lives.effects.filter(
      (effect) => (tenant === undefined || effect.tenant === tenant) && !isZombie(lives, effect, leaseMs),
    )
    const { count, at } = mostAtOnce(effects.map((effect) => ({ from: effect.at, to: effect.until })))
    if (count <= max) return []
    return [
      {
        check: 'C8',
        message: `${count} calls${tenant === undefined ? '' : ` of ${tenant}`} at once; the limit is ${max}`,
        events: effects.filter((effect) => effect.at <= at && at < effect.until),
      },
    ]
  })
}

function isZombie(lives: Lives, effect: Effect, leaseMs: number): boolean {
  const deliveries = lives.jobs.get(effect.job)?.deliveries ?? []
  const holder = deliveries.find(({ start }) => start.fence === effect.fence)
  if (holder === undefined) return false
  if (deliveries.some(({ fence, start }) => fence > holder.fence && start.at < effect.until)) return true
  const span = { from: holder.start.at, to: effect.until, aftermathMs: 0 }
  return faultsBetween(lives, holder.start.process, span).some(({ from, to }) => to - from >= leaseMs)
}
