/**
 * A producer in a process of its own. Run by `Scenario.producer`; its settings come as JSON in the first argument. It
 * submits its jobs chunk by chunk and ends.
 */
import { type QueueOptions, Sluice } from '../../src/index.ts'
import { HistoryRecorder } from '../support/history.ts'
import type { Payload } from './worker-process.ts'

export interface ProducerSettings {
  name: string
  redis: string
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
const sluice = new Sluice({ redis: settings.redis })
const queue = sluice.queue(settings.queue, settings.options)
const result: ProducerResult = { accepted: 0, duplicates: 0, unheard: [], names: [] }
let calls = 0

interface Named {
  name: string
  tenant: string
}

async function submit(chunk: readonly Named[]): Promise<boolean> {
  const call = ++calls
  const jobs = chunk.map(({ name, tenant }) => {
    const payload: Payload = { name, ...(settings.holdMs > 0 && { holdMs: settings.holdMs }) }
    return { tenant, payload, ...(settings.ids === 'given' && { id: name }) }
  })
  const named = chunk.map(({ name, tenant }) => ({ job: name, tenant }))
  history?.record({ kind: 'submit', phase: 'invoke', call, jobs: named })
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

async function submitUntilHeard(chunk: readonly Named[]): Promise<void> {
  for (let isHeard = false; !isHeard; ) isHeard = (await submit(chunk)) || settings.ids === 'generated'
}

process.on('disconnect', () => process.exit())

for (let from = 0; from < settings.count; from += settings.chunk) {
  const size = Math.min(settings.chunk, settings.count - from)
  const chunk = Array.from({ length: size }, (_, i): Named => {
    const tenant = settings.tenants[(from + i) % settings.tenants.length] ?? 'default'
    return { name: `${settings.prefix}-${from + i}`, tenant }
  })
  result.names.push(...chunk.map(({ name }) => name))
  await Promise.all(Array.from({ length: settings.copies }, () => submitUntilHeard(chunk)))
  if (settings.everyMs > 0) await new Promise((resolve) => setTimeout(resolve, settings.everyMs))
}
process.send?.(result, () => process.exit())
