import { setTimeout as delay } from 'node:timers/promises'
import { type QueueOptions, Sluice } from '../../src/index.ts'
import { judge } from '../judge.ts'
import { HttpUpstream } from '../load/http-upstream.ts'
import { ownRedis, startHttpWorkers } from '../load/workers.ts'
import type { HttpCall } from '../processes/http-upstream-process.ts'
import type { Outcome, Scenario } from '../scenario.ts'

const QUEUE = 'quota'
const TENANTS = ['a', 'b', 'c', 'd']
const PROCESSES = 8
const LEFT = 300
const THRESHOLD = 100
const OPTIONS: QueueOptions = { limits: { tenant: { kind: 'quota', threshold: THRESHOLD } } }
/** Long enough that every process would have called before the first answer. */
const LATENCY_MS = 150
/** Long enough to use up what is left, and to see that nothing goes out any more. */
const RESET_EVERY_MS = 10_000
/** After a reset, to see that work goes on. */
const AFTERWARDS_MS = 3_000
/** Of this a little may be lost: what the last answers have counted and what was then in flight overlap. */
const TAKEN = LEFT - THRESHOLD

export const scenario: Scenario = {
  name: 'quota-reserve',
  description:
    'eight processes at once never take a quota below its threshold; the first call goes alone; a reset wakes all',

  async run(context) {
    const { full, onEnd, signal } = context
    const resets = full ? 5 : 1
    const redis = await ownRedis(context)
    const sluice = new Sluice({ redis: redis.url })
    onEnd(() => sluice.close())
    const queue = sluice.queue(QUEUE, OPTIONS)
    await startHttpWorkers(context, {
      count: PROCESSES,
      redis: redis.url,
      queue: QUEUE,
      options: OPTIONS,
      concurrency: 10,
    })
    // Its windows begin with it, so it starts when all are waiting for work.
    const startedAt = Date.now()
    const quota = { left: LEFT, limit: 5_000, firstResetInMs: RESET_EVERY_MS, resetEveryMs: RESET_EVERY_MS }
    const upstream = await HttpUpstream.start(context, {
      quotas: Object.fromEntries(TENANTS.map((tenant) => [tenant, quota])),
      latencyMs: LATENCY_MS,
    })
    const jobs = Array.from({ length: LEFT * (resets + 1) }, () =>
      TENANTS.map((tenant) => ({ tenant, payload: { url: upstream.urlOf(tenant) } })),
    ).flat()
    await queue.submit({ type: 'http.request', jobs })
    const firstResetAt = Math.ceil((startedAt + RESET_EVERY_MS) / 1_000) * 1_000
    const until = firstResetAt + (resets - 1) * RESET_EVERY_MS + AFTERWARDS_MS
    await delay(until - Date.now(), undefined, { signal })
    return judgeCalls(await upstream.calls(), resets)
  },
}

function judgeCalls(calls: readonly HttpCall[], resets: number): Outcome {
  // The last window has only begun.
  const windows = TENANTS.flatMap((tenant) =>
    Array.from({ length: resets + 1 }, (_, window) => ({
      isFull: window < resets,
      isFirst: window === 0,
      calls: calls.filter(({ account, quota }) => account === tenant && quota?.window === window),
    })),
  )
  const lefts = calls.map(({ quota }) => quota?.left ?? Number.NEGATIVE_INFINITY)
  const shares = windows.filter(({ isFull }) => isFull).map((window) => window.calls.length / TAKEN)
  const wakes = windows.filter(({ isFirst }) => !isFirst).map((window) => wokenAfterMs(window.calls))
  const figures = {
    leastLeft: Math.min(...lefts),
    takenShare: shares.reduce((sum, share) => sum + share, 0) / shares.length,
    leastTakenShare: Math.min(...shares),
    firstCallsAtOnce: Math.max(
      ...windows.filter(({ isFirst }) => isFirst).map(({ calls }) => beforeFirstAnswer(calls)),
    ),
    wokenAfterMs: Math.max(...wakes),
    calls: calls.length,
  }
  return judge(figures, {
    leastLeft: { atLeast: THRESHOLD },
    takenShare: { atLeast: 0.95 },
    leastTakenShare: { atLeast: 0.9 },
    firstCallsAtOnce: { atLeast: 1, atMost: 1 },
    wokenAfterMs: { atMost: 1_000 },
  })
}

/** Calls that came before the first of them was answered. */
function beforeFirstAnswer(calls: readonly HttpCall[]): number {
  const first = calls[0]?.at ?? 0
  return calls.filter(({ at }) => at < first + LATENCY_MS).length
}

function wokenAfterMs(calls: readonly HttpCall[]): number {
  return calls[0]?.quota?.sinceResetMs ?? Number.POSITIVE_INFINITY
}
