import { setTimeout as delay } from 'node:timers/promises'
import { type Queue, Sluice } from '../../src/index.ts'
import type { Span } from '../../test/support/arrivals.ts'
import type { Arrival } from '../../test/support/upstream.ts'
import { judge } from '../judge.ts'
import { ChangingLimit, type Worst } from '../load/changing-limit.ts'
import { monotonicMs } from '../load/clock.ts'
import { Producer } from '../load/producers.ts'
import { seededRandom } from '../load/random.ts'
import { definitionsOf, randomLimits, type StackedLimits } from '../load/stacked-limits.ts'
import { countIn, occupancy } from '../load/used.ts'
import { ownRedis, ownUpstream, startWorkers } from '../load/workers.ts'
import type { Figures, Outcome, Scenario, ScenarioContext } from '../scenario.ts'

const QUEUE = 'stacked'
const TENANTS = 20
const PROCESSES = 2
/** More hands than any crowd: they are never what is scarce. */
const CONCURRENCY = 100
/** Long against the 15 ms for which a worker gathers what has ended: a slot is taken until the store was told. */
const HOLD_MS = 300
const WINDOW_MS = 1_000
/** Twice what a grant keeps (0.6 × 50 ms), for the way of the call. */
const WAY_MS = 60
/** After a change the calls of the one before may be under way, and buckets still have their burst: not yet counted as used. */
const SETTLING_MS = 600

/** A setting and the time for which it was in force. */
interface Period extends Span {
  readonly limits: StackedLimits
}

interface Limits {
  readonly queue: ChangingLimit
  readonly tenant: ChangingLimit
  readonly crowd: ChangingLimit
}

export const scenario: Scenario = {
  name: 'stacked-limits',
  description:
    'limits that stack and change at random are never exceeded at the upstream, and the scarce one is used up',

  async run(context) {
    const { full, log, onEnd, signal } = context
    const seconds = full ? 60 : 20
    const random = seededRandom(4)
    const redis = await ownRedis(context)
    const upstream = await ownUpstream(context)
    const sluice = new Sluice({ redis: redis.url })
    onEnd(() => sluice.close())
    const first = randomLimits(random, { tenants: TENANTS, holdMs: HOLD_MS, not: undefined })
    const options = { limits: definitionsOf(first) }
    const queue = sluice.queue(QUEUE, options)
    const workers = await startWorkers(context, {
      count: PROCESSES,
      ...{ redis, upstream, queue: QUEUE, options, concurrency: CONCURRENCY },
    })

    const producer = new Producer(queue)
    const backlog = Array.from({ length: TENANTS }, (_, tenant) => ({ tenant: `tenant-${tenant}`, holdMs: HOLD_MS }))
    for (let round = 0; round < seconds * 8; round++) await producer.submit(backlog)
    const { limits, periods } = await changeAtRandom(context, { queue, first, seconds, random })
    await Promise.all(workers.map((worker) => worker.end()))
    signal.throwIfAborted()
    return judgeCalls(await upstream.arrivals(), { limits, periods, log })
  },
}

/** Changes all limits every few seconds, and notes what was in force when. */
async function changeAtRandom(
  { log, signal }: ScenarioContext,
  { queue, first, seconds, random }: { queue: Queue; first: StackedLimits; seconds: number; random: () => number },
): Promise<{ limits: Limits; periods: Period[] }> {
  const limits = { queue: changing(), tenant: changing(), crowd: changing() }
  const note = (values: StackedLimits, when: { askedAt: number; doneAt: number }): void => {
    for (const name of ['queue', 'tenant', 'crowd'] as const) limits[name].changed(values[name], when)
  }
  const periods: Period[] = []
  const startedAt = monotonicMs()
  let current = first
  let from = startedAt
  note(first, { askedAt: 0, doneAt: 0 })
  while (monotonicMs() - startedAt < seconds * 1_000) {
    log(`scarce: ${current.binding}; ${current.queue}/s, ${current.tenant}/s a tenant, ${current.crowd} in flight`)
    await delay(2_000 + random() * 2_000, undefined, { signal })
    const next = randomLimits(random, { tenants: TENANTS, holdMs: HOLD_MS, not: current.binding })
    const askedAt = monotonicMs()
    await queue.limits.change(definitionsOf(next))
    const doneAt = monotonicMs()
    note(next, { askedAt, doneAt })
    periods.push({ limits: current, from, to: askedAt })
    current = next
    from = doneAt
  }
  return { limits, periods }
}

function changing(): ChangingLimit {
  return new ChangingLimit({ wayMs: WAY_MS })
}

function judgeCalls(
  arrivals: readonly Arrival[],
  { limits, periods, log }: { limits: Limits; periods: readonly Period[]; log: ScenarioContext['log'] },
): Outcome {
  const inOrder = arrivals.toSorted((a, b) => a.at - b.at)
  const times = inOrder.map(({ at }) => at)
  const calls = inOrder.map(({ at, until }): Span => ({ from: at, to: until }))
  const windows = Array.from({ length: TENANTS }, (_, tenant) => {
    const own = times.filter((_, call) => inOrder[call]?.tenant === `tenant-${tenant}`)
    return limits.tenant.busiestWindow(own, WINDOW_MS)
  })
  const worstTenant = windows.reduce((worst, window) => (window.overLimit > worst.overLimit ? window : worst))
  if (worstTenant.overLimit > 1) {
    log(`${worstTenant.count} calls of one tenant instead of ${worstTenant.allowed} ${around(worstTenant, periods)}`)
  }
  const figures = {
    queueMaxOverLimit: limits.queue.busiestWindow(times, WINDOW_MS).overLimit,
    tenantMaxOverLimit: worstTenant.overLimit,
    crowdMaxOverLimit: limits.crowd.mostAtOnceOverLimit(calls),
    ...utilisation(times, calls, periods),
    callsTwice: times.length - new Set(arrivals.map(({ job }) => job)).size,
    calls: times.length,
    changes: periods.length,
  }
  return judge(figures, {
    queueMaxOverLimit: { atMost: 1 },
    tenantMaxOverLimit: { atMost: 1 },
    crowdMaxOverLimit: { atMost: 1 },
    utilisation: { atLeast: 0.9 },
    callsTwice: { atMost: 0 },
  })
}

/** When it was, against the changes. */
function around({ first, last }: Worst, periods: readonly Period[]): string {
  const { limits, from, to } = periods.findLast((period) => period.from <= first) ?? (periods[0] as Period)
  const since = (at: number) => `${Math.round(at - from)} ms`
  return `from ${since(first)} to ${since(last)} of a period of ${since(to)} with ${JSON.stringify(limits)}`
}

/** How much of what the scarce limit gave was used: in all, and by which limit was scarce. */
function utilisation(times: readonly number[], calls: readonly Span[], periods: readonly Period[]): Figures {
  const shares = periods.map(({ limits, from, to }) => {
    const settled = { from: from + SETTLING_MS, to }
    return { binding: limits.binding, ms: to - settled.from, share: usedShare(times, calls, limits, settled) }
  })
  const mean = (of: typeof shares): number =>
    of.reduce((sum, { share, ms }) => sum + share * ms, 0) / of.reduce((sum, { ms }) => sum + ms, 0)
  const bindings = [...new Set(shares.map(({ binding }) => binding))]
  const byBinding = bindings.map((binding) => [
    `${binding}Utilisation`,
    mean(shares.filter((period) => period.binding === binding)),
  ])
  return { utilisation: mean(shares), ...Object.fromEntries(byBinding) }
}

function usedShare(times: readonly number[], calls: readonly Span[], limits: StackedLimits, period: Span): number {
  const perSecond = (countIn(times, period) / (period.to - period.from)) * 1_000
  switch (limits.binding) {
    case 'queue':
      return perSecond / limits.queue
    case 'tenants':
      return perSecond / (limits.tenant * TENANTS)
    case 'crowd':
      return occupancy(calls, limits.crowd, period)
  }
}
