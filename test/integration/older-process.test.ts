import { expect, it, onTestFinished } from 'vitest'
import { throttled } from '../../src/index.ts'
import { queueKeys } from '../../src/store/keys.ts'
import { openRedis } from '../../src/store/redis.ts'
import { registerQueue } from '../../src/store/scripts/register-queue.ts'
import type { SettingValues } from '../../src/store/settings.ts'
import { Countdown } from '../support/countdown.ts'
import { useEngine } from './engine.ts'

const engine = useEngine()

const DAY_US = 86_400_000_000

/** What version 0.2.0 declares, by its defaults: values that came later are not among them. Never to be added to. */
const declaredByOlder = {
  quantum: 4,
  alpha: 0.5,
  max_progress: 60_000_000,
  max_wait: 60_000_000,
  max_stalls: 5,
  max_pending: 0,
  max_pending_tenant: 0,
  keep_ids: DAY_US,
  keep_dead: 30 * DAY_US,
  keep_actions: 30 * DAY_US,
  keep_results: 7 * DAY_US,
  keep_events: DAY_US,
  max_events: 100_000,
} as SettingValues

/** An older process starts, or restarts, in the middle of a rolling upgrade: what it declares holds for all. */
async function olderProcessDeclares(): Promise<void> {
  const redis = openRedis({ redis: { path: engine.server.path } })
  onTestFinished(() => redis.close())
  const bucket = { name: 'queue', kind: 'bucket', count: 500, window: 1_000_000, burst: 5, jitter: 50_000 } as const
  const limits = { queue: [bucket], high: [], normal: [], low: [], tenant: [] }
  const keys = queueKeys(engine.prefix, 'q', 'older')
  // It replaced all that was declared before, and did not say what of its own was given.
  await redis.call('HDEL', keys.settings, 'declared')
  await registerQueue(redis, keys, { values: declaredByOlder, given: {}, limits }, { knewSince: '' })
  await redis.call('HSET', keys.settings, 'declared', JSON.stringify({ values: declaredByOlder, limits }))
}

it('serves a queue whose settings an older process has declared last, pushed-back, failed and delayed jobs too', async () => {
  const queue = engine.queue({ limits: { queue: '500/s' } })
  const done = new Countdown(30)
  const before = new Set<number>()
  await queue.submit({ tenant: 'a', type: 'call', payload: { n: -1 }, delayMs: 3_600_000 })
  await olderProcessDeclares()

  queue.process<{ n: number }>('call', async (job, context) => {
    const { n } = job.payload
    await context.admit()
    const isFirst = !before.has(n)
    before.add(n)
    if (isFirst && n === 3) {
      context.learn({ status: 429, headers: { 'retry-after': '1' } })
      return throttled()
    }
    if (isFirst && n === 1) throw new Error('once')
    done.tick()
    return undefined
  })
  await queue.submit({ tenant: 'a', type: 'call', jobs: Array.from({ length: 30 }, (_, n) => ({ payload: { n } })) })
  await done.reached

  expect(engine.log.filter(({ event }) => event === 'worker.exchange-failed')).toEqual([])
  expect((await queue.congestion.summary()).level).toBe('NONE')
})
