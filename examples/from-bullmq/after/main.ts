/**
 * The same application on Sluice. What is gained: each customer has its own line, so a large campaign does not hold up a small one;
 * the provider never gets more than 200 mails in any second; and there is one object for queue, worker, events and flows.
 *
 *   node --import tsx examples/from-bullmq/after/main.ts redis://127.0.0.1:6379
 */
import { type Action, PermanentError, Sluice } from 'sluice'
import { type Mail, NoSuchAddressError, Provider, recipients } from '../provider.ts'

const provider = new Provider()

const sluice = new Sluice({ redis: process.argv[2] ?? 'redis://127.0.0.1:6379' })
const mails = sluice.queue('mail', { limits: { queue: '200/s' }, maxRetries: 2 })

mails.process<Mail>(
  'SEND',
  async (job) => {
    try {
      await provider.send(job.payload)
    } catch (error) {
      if (error instanceof NoSuchAddressError) throw new PermanentError(error.message)
      throw error
    }
  },
  { concurrency: 20 },
)

/** Customers take turns: whoever comes after a large one does not wait for it. */
function sendCampaign(customer: keyof typeof recipients): Promise<Action> {
  const jobs = recipients[customer].map((to) => ({ payload: { customer, kind: 'campaign', to } satisfies Mail }))
  return mails.submit({ tenant: customer, type: 'SEND', jobs })
}

async function summaryOf(campaign: Action) {
  const { counts } = await campaign.finished()
  return { sent: counts.succeeded, failed: counts.failed }
}

function submit(payload: Mail, options: { id?: string; level?: 'high'; delayMs?: number } = {}) {
  return mails.submit({ type: 'SEND', tenant: payload.customer, payload, ...options })
}

const globex = await sendCampaign('globex')
const initech = await sendCampaign('initech')

const confirmation: Mail = { customer: 'globex', kind: 'confirmation', to: 'user-7' }
await submit(confirmation, { id: 'order-7' })
await submit(confirmation, { id: 'order-7' })

await submit({ customer: 'initech', kind: 'reset', to: 'user-3' }, { level: 'high' })
await submit({ customer: 'initech', kind: 'reminder', to: 'user-4' }, { delayMs: 300 })

const digest: Mail = { customer: 'initech', kind: 'digest', to: 'user-1' }
await mails.schedules.set('digest', { every: '400ms', job: { type: 'SEND', tenant: 'initech', payload: digest } })
await provider.sent('digest', 2)
await mails.schedules.remove('digest')

const summaries = { globex: await summaryOf(globex), initech: await summaryOf(initech) }
await Promise.all([provider.sent('confirmation', 1), provider.sent('reset', 1), provider.sent('reminder', 1)])
console.log(JSON.stringify(provider.report(summaries)))

await sluice.close()
