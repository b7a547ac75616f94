import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listedNames } from '../../test/docs/markdown.ts'
import type { ClaimedJob } from '../engine/claimed-job.ts'
import type { Queue } from '../engine/queue.ts'
import { PermanentError } from '../errors.ts'
import { Sluice, storeOf } from '../sluice.ts'
import { startRedis, type TestRedis } from '../testing/redis-server.ts'
import { Metrics } from './metrics.ts'

let server: TestRedis
let sluice: Sluice
let metrics: Metrics

beforeAll(async () => {
  server = await startRedis()
  sluice = new Sluice({ redis: { path: server.path } })
  const queue = sluice.queue('mail', { limits: { queue: '100/s', levels: { low: { kind: 'concurrency', max: 3 } } } })
  metrics = new Metrics({ queues: new Map([['mail', queue]]), store: storeOf(sluice) })
})
afterAll(async () => {
  metrics.close()
  await sluice.close()
  await server.stop()
})

it('are those that docs/metrics.md lists, each once, and no other', () => {
  expect(metrics.names.sort()).toEqual(listedNames('docs/metrics.md'))
})

it('count what is in Redis anew with every scrape, also with two at once', async () => {
  const queue = sluice.queue('mail')
  await queue.submit({ type: 'T', jobs: [{ payload: 1 }, { payload: 2 }, { payload: 3 }] })
  for (const job of await queue.claim(1)) await job.succeed()

  const texts = await Promise.all([
    metrics.expose({ openStreams: 2, connections: 5 }),
    metrics.expose({ openStreams: 2, connections: 5 }),
  ])

  for (const text of texts) {
    expect(text).toContain('sluice_jobs{queue="mail",state="waiting"} 2')
    expect(text).toContain('sluice_jobs_submitted_total{queue="mail"} 3')
    expect(text).toContain('sluice_jobs_succeeded_total{queue="mail"} 1')
    expect(text).toContain('sluice_tenants{queue="mail",level="normal",state="ready"} 1')
    expect(text).toContain('sluice_http_open_streams 2')
    expect(text).toContain('sluice_http_connections 5')
    expect(text).toContain('sluice_dead_letters{queue="mail"} 0')
    expect(text).toMatch(/sluice_redis_memory_used_bytes [1-9]\d{5,}/)
    expect(text).toContain('sluice_redis_memory_limit_bytes 0')
  }
})

it('show each limit of the queue and its levels, and forget one that is taken off', async () => {
  const queue = sluice.queue('mail')
  await queue.limits.change({ partner: '10/s' })
  const before = await metrics.expose({ openStreams: 0, connections: 0 })
  await queue.limits.remove('queue', 'partner')
  const after = await metrics.expose({ openStreams: 0, connections: 0 })

  expect(before).toMatch(/sluice_limit_rate_per_second\{queue="mail",scope="queue",limit="partner"\} 9\.5/)
  expect(before).toContain('sluice_limit_remaining_permits{queue="mail",scope="low",limit="low"} 3')
  expect(after).not.toContain('partner')
})

it('count what audits have put right, by kind', async () => {
  const queue = sluice.queue('audited')
  const observed = new Metrics({ queues: new Map([['audited', queue]]), store: storeOf(sluice) })
  await queue.submit({ type: 'T', tenant: 'a' })
  const client = server.client()
  await client.hset('sluice:{audited}:audited:running', 'a', 2)
  client.disconnect()
  await queue.audit({ repair: false })
  const before = await observed.expose({ openStreams: 0, connections: 0 })
  await queue.audit()
  const after = await observed.expose({ openStreams: 0, connections: 0 })
  observed.close()

  expect(before).not.toContain('sluice_audit_differences_total{')
  expect(after).toContain('sluice_audit_differences_total{queue="audited",kind="tenant.running"} 1')
  expect(after).toContain('sluice_audit_rounds_total{queue="audited"} 0')
})

it('measure requests by their route', async () => {
  metrics.observeRequest({ method: 'GET', route: '/v1/queues/:queue', status: 200, seconds: 0.02 })

  expect(await metrics.expose({ openStreams: 0, connections: 0 })).toContain(
    'sluice_http_request_duration_seconds_bucket{le="0.025",method="GET",route="/v1/queues/:queue",status="200"} 1',
  )
})

it('count as lag of the event loop only what is beyond the time between two looks at it', async () => {
  const median = async () => {
    const text = await metrics.expose({ openStreams: 0, connections: 0 })
    return Number(/sluice_process_event_loop_lag_seconds\{quantile="0.5"\} (\S+)/.exec(text)?.[1])
  }
  await median()

  // Looks are taken while time passes. A machine that stands still lags indeed, and is looked at again.
  await sleep(500)
  await expect.poll(median, { interval: 500, timeout: 20_000 }).toBeLessThan(0.01)
})

it('say how long jobs of this process waited and ran, by level, type and outcome', async () => {
  const queue = sluice.queue('timed')
  await queue.submit({ type: 'T', payload: 1, level: 'high' })
  await queue.submit({ type: 'T', payload: 2, delayMs: 1 })
  await queue.submit({ type: 'T', payload: 3, runAt: Date.now() - 60_000 })
  const [first, second, third] = await claimAll(queue, 3)
  await first?.succeed()
  await second?.fail(new PermanentError('gone'))
  await third?.throttle()

  const text = await expose(queue)

  expect(text).toMatch(/sluice_jobs_promoted_total\{queue="timed"\} [12]\n/)
  expect(text).toContain('sluice_job_wait_seconds_count{queue="timed",level="high"} 1')
  expect(text).toContain('sluice_job_wait_seconds_count{queue="timed",level="normal"} 2')
  expect(text).toContain('sluice_job_wait_seconds_bucket{queue="timed",level="normal",le="60"} 2')
  for (const outcome of ['succeeded', 'dead', 'throttled']) {
    expect(text).toContain(`sluice_job_run_seconds_count{queue="timed",type="T",outcome="${outcome}"} 1`)
  }
  expect(text).toMatch(/sluice_claim_jobs_sum\{queue="timed"\} 3\n/)
  expect(text).toMatch(/sluice_script_duration_seconds_count\{script="finish-and-claim"\} [1-9]/)
})

it('count submits that were refused, by reason', async () => {
  const queue = sluice.queue('full', { maxPending: 1, whenFull: 'error' })
  await queue.submit({ type: 'T', payload: 1 })
  await expect(queue.submit({ type: 'T', payload: 2 })).rejects.toMatchObject({ code: 'SLUICE_QUEUE_FULL' })
  await expect(queue.submit({ type: 'T', jobs: [{ payload: 3 }] })).rejects.toMatchObject({ code: 'SLUICE_QUEUE_FULL' })
  await expect(queue.submit({ payload: 4 })).rejects.toMatchObject({ code: 'SLUICE_INVALID_JOB' })

  const text = await expose(queue)

  expect(text).toContain('sluice_submits_rejected_total{queue="full",reason="queue-full"} 2')
  expect(text).toContain('sluice_submits_rejected_total{queue="full",reason="invalid"} 1')
  expect(text).toContain('sluice_submits_rejected_total{queue="full",reason="out-of-memory"} 0')
})

it('say what each limit has granted and denied, and when something is due', async () => {
  const slots = { kind: 'concurrency', max: 1 } as const
  const queue = sluice.queue('limited', { limits: { queue: '1000/s', levels: { low: slots }, tenant: '2/h' } })
  await queue.submit({ type: 'T', jobs: [{ tenant: 'a' }, { tenant: 'a' }, { tenant: 'b', level: 'low' }] })
  const due = Date.now() + 60_000
  await queue.submit({ type: 'T', runAt: due })
  await queue.claim(5)

  const text = await expose(queue)

  expect(text).toContain('sluice_limit_granted_permits_total{queue="limited",scope="queue",limit="queue"} 2')
  expect(text).toContain('sluice_limit_granted_permits_total{queue="limited",scope="low",limit="low"} 1')
  expect(text).toContain('sluice_limit_granted_permits_total{queue="limited",scope="tenant",limit="tenant"} 2')
  expect(text).toContain('sluice_limit_denied_total{queue="limited",scope="tenant",limit="tenant",reason="rate"} 1')
  expect(text).toContain('sluice_jobs_claimed_total{queue="limited"} 2')
  expect(text).toContain(`sluice_next_due_timestamp_seconds{queue="limited",what="delayed"} ${due / 1000}`)
  expect(text).toMatch(/sluice_next_due_timestamp_seconds\{queue="limited",what="parked"\} \d{10}/)
})

it('name the fifty tenants with the most waiting jobs, and count the others together', async () => {
  const queue = sluice.queue('many')
  const jobs = Array.from({ length: 60 }, (_, at) =>
    Array.from({ length: at + 1 }, () => ({ tenant: `t${at}` })),
  ).flat()
  await queue.submit({ type: 'T', jobs })

  const text = await expose(queue)

  expect(text.match(/sluice_tenant_jobs_waiting\{/g)).toHaveLength(51)
  expect(text).toContain('sluice_tenant_jobs_waiting{queue="many",tenant="t59"} 60')
  expect(text).toContain('sluice_tenant_jobs_waiting{queue="many",tenant="t10"} 11')
  expect(text).not.toContain('tenant="t9"}')
  expect(text).toContain('sluice_tenant_jobs_waiting{queue="many",tenant="other"} 55')
})

it('say how far a queue and its tenants are behind, and how often they were held back', async () => {
  const queue = sluice.queue('behind', { limits: { tenant: '2/s' } })
  await queue.submit({ type: 'T', jobs: Array.from({ length: 81 }, () => ({ tenant: 'slow' })) })
  await queue.submit({ type: 'T', jobs: [{ tenant: 'quick' }, { tenant: 'quick' }] })
  const claimed = await queue.claim(5)
  for (const job of claimed) await job.throttle()

  const text = await expose(queue)

  expect(claimed).toHaveLength(2)
  expect(text).toContain('sluice_tenant_congestion_level{queue="behind",tenant="slow"} 4')
  expect(text).toContain('sluice_tenant_congestion_level{queue="behind",tenant="quick"} 0')
  expect(text).toContain('sluice_congestion_tenants{queue="behind",level="CRITICAL"} 1')
  expect(text).toContain('sluice_congestion_tenants{queue="behind",level="HIGH"} 0')
  expect(text).toContain('sluice_congestion_level{queue="behind"} 4')
  // Each was parked once, and had one job pushed back; none has ended.
  expect(text).toContain('sluice_tenant_throttles_per_job{queue="behind",tenant="slow"} 2')
  expect(text).toContain('sluice_congestion_throttles_per_job{queue="behind"} 4')
  expect(text).toContain('sluice_congestion_moves_avoided_total{queue="behind"} 2')
  // A second for the quick one, and 40 more than that for the slow one.
  expect(text).toContain('sluice_congestion_backoff_seconds_bucket{queue="behind",le="1"} 1')
  expect(text).toContain('sluice_congestion_backoff_seconds_bucket{queue="behind",le="60"} 2')
  expect(text).toContain('sluice_congestion_backoff_seconds_sum{queue="behind"} 42')
})

it('count ticks of schedules, and say when the next is due', async () => {
  const queue = sluice.queue('scheduled')
  const job = { type: 'T' }
  await queue.schedules.set('often', { every: 100, job })
  await claimAll(queue, 2)
  await queue.schedules.remove('often')
  const before = await expose(queue)
  await queue.schedules.set('rarely', { every: '1h', job })
  const after = await expose(queue)

  const hour = Math.floor(Date.now() / 3_600_000) * 3_600
  expect(before).toMatch(/sluice_schedule_ticks_total\{queue="scheduled"\} [2-9]/)
  expect(before).toMatch(/sluice_schedule_ticks_missed_total\{queue="scheduled"\} \d+/)
  expect(before).not.toContain('what="schedule"')
  expect([hour, hour + 3_600].map(String)).toContain(
    /sluice_next_due_timestamp_seconds\{queue="scheduled",what="schedule"\} (\d+)/.exec(after)?.[1],
  )
})

/** What metrics of this queue alone say. */
async function expose(queue: Queue): Promise<string> {
  const own = new Metrics({ queues: new Map([[queue.name, queue]]), store: storeOf(sluice) })
  try {
    return await own.expose({ openStreams: 0, connections: 0 })
  } finally {
    own.close()
  }
}

/** Until so many have come: a delayed one comes a little later. */
async function claimAll(queue: Queue, count: number): Promise<ClaimedJob[]> {
  const found: ClaimedJob[] = []
  while (found.length < count) found.push(...(await queue.claim(count - found.length)))
  return found
}
