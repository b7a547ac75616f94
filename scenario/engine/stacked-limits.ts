import { setTimeout as delay } from 'node:timers/promises'
import { Sluice } from '../../src/index.ts'
import type { Span } from '../../test/support/arrivals.ts'
import type { Arrival } from '../../test/support/upstream.ts'
import { judge } from '../judge.ts'
import type { Worst } from '../load/changing-limit.ts'
import { monotonicMs } from '../load/clock.ts'
import { LimitChanger, type Period } from '../load/limit-changer.ts'
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
/** After a change the calls of the one before may be under way, and buckets still have their burst: not yet counted as used. */
const SETTLING_MS = 600

/** So little is left of the day this long before it ends that it is used up, and all wait for the next. */
const DAY_ENDS_MS = 4_000
const DAY_LEFT = 100

/** The day that ends while the limits change; `midnight` of the machine's monotonic clock. */
interface Day {
  readonly takenBefore: number
  readonly midnight: number
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
    const options = { limits: definitionsOf(first, 0) }
    const queue = sluice.queue(QUEUE, options)
    const workers = await startWorkers(context, {
      count: PROCESSES,
      ...{ redis, upstream, queue: QUEUE, options, concurrency: CONCURRENCY },
    })

    const producer = new Producer(queue)
    const backlog = Array.from({ length: TENANTS }, (_, tenant) => ({ tenant: `tenant-${tenant}`, holdMs: HOLD_MS }))
    for (let round = 0; round < seconds * 8; round++) await producer.submit(backlog)
    // In the middle, whenever the processes were ready: the day is moved.
    const midnight = Date.now() + (seconds * 1_000) / 2
    const changer = new LimitChanger({ queue, first, midnight })
    const toMidnight = () => midnight - Date.now()
    await changeAtRandom(context, { changer, random, isOver: () => toMidnight() < DAY_ENDS_MS })
    const takenBefore = await upstream.total()
    log(`the day has ${DAY_LEFT} calls left`)
    await changer.change({ ...changer.current, binding: 'day', day: takenBefore + DAY_LEFT })
    const day = { takenBefore, midnight: monotonicMs() + toMidnight() }
    await delay(toMidnight() + SETTLING_MS, undefined, { signal })
    const until = monotonicMs() + (seconds * 1_000) / 2
    await changeAtRandom(context, { changer, random, isOver: () => monotonicMs() > until })
    await Promise.all(workers.map((worker) => worker.end()))
    return judgeCalls(await upstream.arrivals(), { changer, day, log })
  },
}

/** Changes all limits every few seconds. */
async function changeAtRandom(
  { log, signal }: ScenarioContext,
  { changer, random, isOver }: { changer: LimitChanger; random: () => number; isOver: () => boolean },
): Promise<void> {
  while (!isOver()) {
    const next = randomLimits(random, { tenants: TENANTS, holdMs: HOLD_MS, not: changer.current.binding })
    log(`scarce: ${next.binding}; ${next.queue}/s, ${next.tenant}/s a tenant, ${next.crowd} in flight`)
    await changer.change(next)
    await delay(2_000 + random() * 2_000, undefined, { signal })
  }
}

function judgeCalls(
  arrivals: readonly Arrival[],
  { changer, day, log }: { changer: LimitChanger; day: Day; log: ScenarioContext['log'] },
): Outcome {
  const inOrder = arrivals.toSorted((a, b) => a.at - b.at)
  const times = inOrder.map(({ at }) => at)
  const calls = inOrder.map(({ at, until }): Span => ({ from: at, to: until }))
  const windows = Array.from({ length: TENANTS }, (_, tenant) => {
    const own = times.filter((_, call) => inOrder[call]?.tenant === `tenant-${tenant}`)
    return changer.tenant.busiestWindow(own, WINDOW_MS)
  })
  const worstTenant = windows.reduce((worst, window) => (window.overLimit > worst.overLimit ? window : worst))
  if (worstTenant.overLimit > 1) {
    log(
      `${worstTenant.count} calls of one tenant instead of ${worstTenant.allowed} ${around(worstTenant, changer.periods)}`,
    )
  }
  const figures = {
    queueMaxOverLimit: changer.queue.busiestWindow(times, WINDOW_MS).overLimit,
    tenantMaxOverLimit: worstTenant.overLimit,
    crowdMaxOverLimit: changer.crowd.mostAtOnceOverLimit(calls),
    ...dayFigures(times, day),
    ...utilisation(
      times,
      calls,
      changer.periods.filter(({ limits }) => limits.binding !== 'day'),
    ),
    callsTwice: times.length - new Set(arrivals.map(({ job }) => job)).size,
    calls: times.length,
    changes: changer.periods.length,
  }
  return judge(figures, {
    queueMaxOverLimit: { atMost: 1 },
    tenantMaxOverLimit: { atMost: 1 },
    crowdMaxOverLimit: { atMost: 1 },
    dayMaxOverLimit: { atMost: 1 },
    dayUtilisation: { atLeast: 0.9 },
    dayBeganAfterMs: { atMost: 1_000 },
    utilisation: { atLeast: 0.9 },
    callsTwice: { atMost: 0 },
  })
}

/** How the day ended, and how long after it the next one's calls began. */
function dayFigures(times: readonly number[], { takenBefore, midnight }: Day): Figures {
  const taken = times.filter((at) => at < midnight).length
  return {
    dayMaxOverLimit: taken / (takenBefore + DAY_LEFT),
    dayUtilisation: (taken - takenBefore) / DAY_LEFT,
    dayBeganAfterMs: (times.find((at) => at >= midnight) ?? Number.POSITIVE_INFINITY) - midnight,
  }
}

/** When it was, against the changes. */
function around({ first, last }: Worst, periods: readonly Period[]): string {
  const { limits, from, to } = periods.findLast((period) => period.from <= first) ?? (periods[0] as Period)
  const since = (at: number) => `${Math.round(at - from)} ms`
  return `from ${since(first)} to ${since(last)} of a period of ${since(to)} with ${JSON.stringify(limits)}`
}

/** How much of what the scarce limit gave was used: in all, and by which limit was scarce. */
function utilisation(times: readonly number[], calls: readonly Span[], periods: readonly Period[]): Figures {
  const long = periods.filter(({ from, to }) => to - from > 2 * SETTLING_MS)
  const shares = long.map(({ limits, from, to }) => {
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
    case 'day':
      throw new Error('a day is judged as a whole')
    case 'crowd':
      return occupancy(calls, limits.crowd, period)
  }
}
