/**
 * A process that works on bulk actions, or produces one, to be killed. Run by actions.test.ts; its settings come as JSON
 * in the first argument.
 */
import { type QueueOptions, Sluice } from '../../src/index.ts'

export interface ActionProcessSettings {
  redis: string
  queue: string
  options: QueueOptions
  /** `produce` submits, `work` runs jobs and aggregates. */
  role: 'produce' | 'work'
  /** Of the action that is produced: jobs with the payloads 0 up to this. */
  count: number
  /** Pause after every hundred jobs that are produced. */
  everyMs: number
  /** An aggregate begun here never ends. */
  hangs: boolean
}

export type ActionProcessMessage =
  | { is: 'ready' }
  | { is: 'produced'; accepted: number }
  | { is: 'producing'; jobs: number }
  | { is: 'aggregating' }

const settings = JSON.parse(process.argv[2] ?? '') as ActionProcessSettings
const sluice = new Sluice({ redis: settings.redis })
const queue = sluice.queue(settings.queue, settings.options)

function tell(message: ActionProcessMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()))
}

async function work(): Promise<void> {
  await queue.aggregate('SUM', async (results) => {
    await tell({ is: 'aggregating' })
    if (settings.hangs) await new Promise(() => {})
    let sum = 0
    for await (const { result } of results) sum += result as number
    return { sum }
  })
  const handler = async (job: { payload: number }) => {
    await new Promise((resolve) => setTimeout(resolve, 2))
    return job.payload
  }
  queue.process('SUM', handler, { concurrency: 20 })
  queue.process('CALL', handler, { concurrency: 20 })
  await tell({ is: 'ready' })
}

async function* jobs(): AsyncGenerator<{ payload: number }> {
  for (let n = 0; n < settings.count; n++) {
    yield { payload: n }
    if (n % 100 !== 99) continue
    if (settings.everyMs > 0) await new Promise((resolve) => setTimeout(resolve, settings.everyMs))
    await tell({ is: 'producing', jobs: n + 1 })
  }
}

async function produce(): Promise<void> {
  const input = { tenant: 'a', action: 'x', type: 'CALL', keepResults: true, from: 'accepted' as const }
  const { accepted } = await queue.submit({ ...input, jobs: jobs() })
  await tell({ is: 'produced', accepted })
  process.exit()
}

process.on('disconnect', () => process.exit())
await (settings.role === 'work' ? work() : produce())
