/**
 * A customer's bulk send beside others. Customer A sends a promotion to 3,000 recipients through a partner that takes 500
 * calls in any second. Two other customers come while that runs, with 100 each. Nobody waits for A; A gets what the
 * others leave.
 *
 *   node --import tsx examples/promotions/main.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Action, Sluice, throttled } from 'sluice'
import { startUpstream } from 'sluice/testing'

interface Promotion {
  to: string
}

// The partner's API. Here it is a process on this machine that enforces its limit and counts who breaks it.
const partner = await startUpstream({ limit: 500, latencyMs: 20 })

const sluice = new Sluice({ redis: 'embedded' }) // in production: 'redis://redis.internal:6379'
const promotions = sluice.queue('promotions', { limits: { queue: '500/s' } })

promotions.process<Promotion>(
  'send',
  async (job, context) => {
    const body = JSON.stringify(job.payload) // slow preparations come first
    await context.admit() // the limit allows a call now
    const url = `${partner.url}/${job.tenant}/${job.payload.to}`
    const reply = await fetch(url, { method: 'POST', body, signal: context.signal })
    if (reply.status === 429) return throttled({ retryAfterMs: 1_000 }) // comes again, costs no retry
    if (!reply.ok) throw new Error(`the partner answered ${reply.status}`) // retried, with growing pauses
    return { status: reply.status }
  },
  { concurrency: 40 },
)

/** Any iterable will do, an async one over a database cursor too: it is read as fast as the queue takes it. */
function* recipients(count: number) {
  for (let n = 1; n <= count; n++) yield { payload: { to: `user-${n}` } }
}

/** With a name of its own (`action: 'summer-sale'`), a send whose producer died is gone on with by sending it again. */
async function send(tenant: string, count: number): Promise<Action> {
  const action = await promotions.submit({ tenant, type: 'send', jobs: recipients(count) })
  console.log(`${tenant} sends to ${action.accepted}`)
  return action
}

async function report(action: Action): Promise<void> {
  const { counts, firstStartAt = 0, lastEndAt = 0 } = await action.finished()
  const seconds = (lastEndAt - firstStartAt) / 1_000
  console.log(`${action.tenant} is done: ${counts.succeeded} sent, ${counts.failed} failed, in ${seconds.toFixed(1)} s`)
}

const large = await send('customer-a', 3_000)
const reports = [report(large)]
await sleep(1_000)
for (const tenant of ['customer-b', 'customer-c']) reports.push(report(await send(tenant, 100)))

let shown = 0
for await (const { done, total, perSecond } of large.progress()) {
  if (done < shown + 500) continue
  shown = done
  console.log(`customer-a: ${done} of ${total}, ${Math.round(perSecond)} a second`)
}
await Promise.all(reports)

const { calls, violations } = await partner.report()
console.log(`the partner saw ${calls} calls, ${violations} too many`)
await sluice.close()
await partner.stop()
