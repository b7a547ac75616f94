/**
 * A small application that sends mails, on BullMQ. Campaigns of customers, a confirmation that must not go out twice, an urgent
 * password reset, a reminder for later and a digest again and again; 200 mails a second at most.
 *
 *   node --import tsx examples/from-bullmq/before/main.ts redis://127.0.0.1:6379
 */
import { FlowProducer, Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq'
import { type Mail, NoSuchAddressError, Provider, recipients } from '../provider.ts'

const { hostname: host, port } = new URL(process.argv[2] ?? 'redis://127.0.0.1:6379')
const connection = { host, port: Number(port), maxRetriesPerRequest: null }
const provider = new Provider()

const retries = { attempts: 3, backoff: { type: 'exponential', delay: 1_000 } }
const keep = { removeOnComplete: true, removeOnFail: { age: 7 * 86_400 } }
const mails = new Queue<Mail>('mail', { connection, defaultJobOptions: { ...retries, ...keep } })
const flows = new FlowProducer({ connection })
const campaignEvents = new QueueEvents('campaigns', { connection })

const sender = new Worker<Mail>(
  'mail',
  async (job) => {
    try {
      await provider.send(job.data)
    } catch (error) {
      if (error instanceof NoSuchAddressError) throw new UnrecoverableError(error.message)
      throw error
    }
  },
  { connection, concurrency: 20, limiter: { max: 200, duration: 1_000 } },
)

// Runs when all mails of a campaign have ended.
const campaigns = new Worker(
  'campaigns',
  async (job) => {
    const { processed = 0, ignored = 0 } = await job.getDependenciesCount({ processed: true, ignored: true })
    return { sent: processed, failed: ignored }
  },
  { connection },
)

/** Whoever comes after a large customer waits: there is one line for all. */
async function sendCampaign(customer: keyof typeof recipients) {
  const flow = await flows.add({
    name: 'CAMPAIGN',
    queueName: 'campaigns',
    data: { customer },
    children: recipients[customer].map((to) => ({
      name: 'SEND',
      queueName: 'mail',
      data: { customer, kind: 'campaign', to } satisfies Mail,
      // Without a priority it would go before everything that has one.
      opts: { ...retries, ...keep, priority: 10, ignoreDependencyOnFailure: true },
    })),
  })
  return flow.job
}

const globex = await sendCampaign('globex')
const initech = await sendCampaign('initech')

const confirmation: Mail = { customer: 'globex', kind: 'confirmation', to: 'user-7' }
await mails.add('SEND', confirmation, { jobId: 'order-7', priority: 5 })
await mails.add('SEND', confirmation, { jobId: 'order-7', priority: 5 })

await mails.add('SEND', { customer: 'initech', kind: 'reset', to: 'user-3' }, { priority: 1 })
await mails.add('SEND', { customer: 'initech', kind: 'reminder', to: 'user-4' }, { delay: 300, priority: 5 })

const digest: Mail = { customer: 'initech', kind: 'digest', to: 'user-1' }
await mails.upsertJobScheduler('digest', { every: 400 }, { name: 'SEND', data: digest, opts: { priority: 5 } })
await provider.sent('digest', 2)
await mails.removeJobScheduler('digest')

const summaries = {
  globex: await globex.waitUntilFinished(campaignEvents),
  initech: await initech.waitUntilFinished(campaignEvents),
}
await Promise.all([provider.sent('confirmation', 1), provider.sent('reset', 1), provider.sent('reminder', 1)])
console.log(JSON.stringify(provider.report(summaries)))

await Promise.all([sender.close(), campaigns.close(), campaignEvents.close(), flows.close(), mails.close()])
