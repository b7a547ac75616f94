/**
 * A producer in a process of its own. Run by `Trial.producer`; its settings come as JSON in the first argument. It
 * submits its jobs chunk by chunk, until all are stored or it is told to finish, and ends.
 */
import { type JobInput, type QueueOptions, type RedisOptions, Sluice } from '../../src/index.ts'
import { HistoryRecorder, type SubmittedJob } from '../support/history.ts'
import type { Payload } from './worker-process.ts'

export interface ProducerSettings {
  name: string
  redis: RedisOptions['redis']
  durability?: RedisOptions['durability']
  queue: string
  options: QueueOptions
  historyFolder?: string
  /** The names of the jobs start with this. */
  prefix: string
  count: number
  chunk: number
  /** Jobs go to these in turn. */
  tenants: readonly string[]
  /** Given ids are the names. A chunk with given ids is submitted again until the answer is heard. */
  ids: 'given' | 'generated'
  /** Pause between chunks. */
  everyMs: number
  /** How often each chunk is submitted at the same time. */
  copies: number
  holdMs: number
  /** Some jobs fail once, some for ever, some are delayed and some stand in ordered lanes. */
  mixed: boolean
  /** Of the mixed: whether some stand in ordered lanes. */
  ordered: boolean
}

export interface ProducerResult {
  accepted: number
  duplicates: number
  /** What was thrown by submits whose answer was not heard. */
  unheard: string[]
  /** The names of all jobs it asked to store. */
  names: string[]
}

const settings = JSON.parse(process.argv[2] ?? '') as ProducerSettings
const history = settings.historyFolder ? new HistoryRecorder(settings.historyFolder, settings.name) : undefined
const sluice = new Sluice({
  redis: settings.redis,
  ...(settings.durability && { durability: settings.durability }),
})
const queue = sluice.queue(settings.queue, settings.options)
const result: ProducerResult = { accepted: 0, duplicates: 0, unheard: [], names: [] }
let calls = 0

interface Planned {
  spec: SubmittedJob
  input: JobInput
}

function plan(index: number): Planned {
  const { tenants, prefix, ids, holdMs, mixed } = settings
  const job = `${prefix}-${index}`
  const tenant = tenants[index % tenants.length] ?? 'default'
  const is = (every: number, rest: number) => mixed && index % every === rest
  const payload: Payload = {
    name: job,
    ...(holdMs > 0 && { holdMs }),
    ...((is(20, 7) || is(200, 15)) && { failures: 1 }),
    ...(is(50, 13) && { isHopeless: true }),
  }
  const place = {
    tenant,
    ...(ids === 'given' && { id: job }),
    ...(is(10, 3) && { delayMs: 250 }),
    ...(settings.ordered && is(10, 5) && { lane: `in-order-${prefix}`, ordered: true }),
  }
  return { spec: { job, ...place }, input: { payload, ...place } }
}

async function submit(chunk: readonly Planned[]): Promise<boolean> {
  const call = ++calls
  const jobs = chunk.map(({ input }) => input)
  history?.record({ kind: 'submit', phase: 'invoke', call, jobs: chunk.map(({ spec }) => spec) })
  try {
    const { accepted, duplicates } = await queue.submit({ type: 'CALL', jobs })
    history?.record({ kind: 'submit', phase: 'ok', call })
    result.accepted += accepted
    result.duplicates += duplicates
    return true
  } catch (error) {
    history?.record({ kind: 'submit', phase: 'unknown', call })
    result.unheard.push(String(error))
    return false
  }
}

async function submitUntilHeard(chunk: readonly Planned[]): Promise<void> {
  for (let isHeard = false; !isHeard; ) isHeard = (await submit(chunk)) || settings.ids === 'generated'
}

let isEnough = false
process.on('disconnect', () => process.exit())
process.on('message', (message) => {
  if (message === 'finish') isEnough = true
})

for (let from = 0; from < settings.count && !isEnough; from += settings.chunk) {
  const size = Math.min(settings.chunk, settings.count - from)
  const chunk = Array.from({ length: size }, (_, i) => plan(from + i))
  result.names.push(...chunk.map(({ spec }) => spec.job))
  await Promise.all(Array.from({ length: settings.copies }, () => submitUntilHeard(chunk)))
  if (settings.everyMs > 0) await new Promise((resolve) => setTimeout(resolve, settings.everyMs))
}
process.send?.(result, () => process.exit())
