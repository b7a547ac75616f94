/**
 * A worker in a process of its own, to be stopped, killed and cut off. Run by `Trial.worker`; its settings come as
 * JSON in the first argument.
 */
import {
  type ClaimedJob,
  isSluiceError,
  PermanentError,
  type QueueOptions,
  type RedisOptions,
  Sluice,
} from '../../src/index.ts'
import { goFirst } from '../../src/testing/go-first.ts'
import { type HandlerResult, HistoryRecorder } from '../support/history.ts'
import { UpstreamClient } from '../support/upstream.ts'

export interface WorkerSettings {
  name: string
  redis: RedisOptions['redis']
  durability?: RedisOptions['durability']
  queue: string
  options: QueueOptions
  /** A limit that its queue shares with others. */
  sharedLimit?: { name: string; definition: string }
  /** Where its part of the history goes; none is kept without. */
  historyFolder?: string
  /** Calls the upstream in each job; without, a job only takes its time. */
  upstreamPort?: number
  concurrency: number
  /** `process` hands jobs to a handler, `claim` runs a loop of its own and learns what the store says to each end. */
  mode: 'process' | 'claim'
  /** Jobs never end here. */
  hangs: boolean
  /** What it does is measured in milliseconds. */
  goesFirst: boolean
  /** Queues that it works for as well, each with a schedule and an aggregate; jobs there only end. */
  otherQueues?: readonly string[]
}

/** What tests put into a job. */
export interface Payload {
  /** By which histories know the job. */
  name: string
  holdMs?: number
  /** Runs that fail before one succeeds. */
  failures?: number
  /** Its handler says that it will never succeed. */
  isHopeless?: boolean
}

/** What a worker tells the test, beside its history. */
export type WorkerMessage =
  | { is: 'ready' }
  | { is: 'started'; job: string; fence: string }
  | { is: 'ended'; job: string }

interface HeldJob {
  tenant: string
  attempt: number
  payload: unknown
}

const settings = JSON.parse(process.argv[2] ?? '') as WorkerSettings
if (settings.goesFirst) goFirst()
const history = settings.historyFolder ? new HistoryRecorder(settings.historyFolder, settings.name) : undefined
const upstream = settings.upstreamPort ? await UpstreamClient.connect(settings.upstreamPort) : undefined
const sluice = new Sluice({
  redis: settings.redis,
  ...(settings.durability && { durability: settings.durability }),
})
const { sharedLimit } = settings
const queue = sluice.queue(settings.queue, {
  ...settings.options,
  ...(sharedLimit && { limits: { upstream: sluice.limit(sharedLimit.name, sharedLimit.definition) } }),
})

function tell(message: WorkerMessage): void {
  // Without a history nobody asks for single jobs, and thousands of messages a second would disturb what is measured.
  if (history !== undefined || message.is === 'ready') process.send?.(message)
}

/** Does what the payload says; throws what makes the job fail. */
async function run(job: HeldJob, fence: string): Promise<void> {
  const { name, holdMs = 0, failures = 0, isHopeless = false } = job.payload as Payload
  history?.record({ kind: 'start', job: name, tenant: job.tenant, fence })
  tell({ is: 'started', job: name, fence })
  if (settings.hangs) await new Promise(() => {})
  if (upstream !== undefined) await upstream.call({ job: name, tenant: job.tenant, fence, holdMs })
  else if (holdMs > 0) await new Promise((resolve) => setTimeout(resolve, holdMs))
  const fails = job.attempt <= failures
  history?.record({ kind: 'end', job: name, fence, result: isHopeless ? 'dead' : fails ? 'failed' : 'succeeded' })
  tell({ is: 'ended', job: name })
  if (isHopeless) throw new PermanentError('hopeless')
  if (fails) throw new Error('not yet')
}

async function claimForEver(): Promise<void> {
  for (;;) {
    const jobs = await queue.claim(settings.concurrency)
    await Promise.all(jobs.map((job) => runClaimed(job)))
    // A claim does not wait for work; a loop that minds Redis does.
    if (jobs.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

async function runClaimed(job: ClaimedJob): Promise<void> {
  const fence = String(job.fence)
  let result: HandlerResult = 'succeeded'
  let answer: 'accepted' | 'stale' | 'unknown' = 'accepted'
  try {
    try {
      // Under a limit its permit may have gone stale on the way here.
      await job.admit()
      await run(job, fence)
      await job.succeed()
    } catch (error) {
      if (isSluiceError(error) && error.code !== 'SLUICE_PERMANENT') throw error
      result = isSluiceError(error) ? 'dead' : 'failed'
      await job.fail(error)
    }
  } catch (error) {
    answer = isSluiceError(error) && error.code === 'SLUICE_LEASE_LOST' ? 'stale' : 'unknown'
  }
  history?.record({ kind: 'outcome', job: (job.payload as Payload).name, fence, result, answer })
}

for (const name of settings.otherQueues ?? []) {
  const other = sluice.queue(name, settings.options)
  other.process('CALL', () => {})
  await other.aggregate('CALL', () => ({}))
  await other.schedules.set('yearly', { cron: '0 0 1 1 *', job: { type: 'CALL', payload: {} } })
}

process.on('disconnect', () => process.exit())

if (settings.mode === 'claim') void claimForEver()
else queue.process('CALL', (job, context) => run(job, String(context.fence)), { concurrency: settings.concurrency })
tell({ is: 'ready' })
