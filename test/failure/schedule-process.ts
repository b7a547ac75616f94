/**
 * A process that wants schedules and runs their jobs, to be killed. Run by schedules.test.ts; its settings come as JSON in the
 * first argument.
 */
import { type MissedRule, type QueueOptions, Sluice } from '../../src/index.ts'

export interface ScheduleProcessSettings {
  redis: string
  queue: string
  options: QueueOptions
  schedules: Readonly<Record<string, MissedRule>>
  everyMs: number
}

export type ScheduleProcessMessage = { is: 'ready' } | { is: 'ran'; id: string }

const settings = JSON.parse(process.argv[2] ?? '') as ScheduleProcessSettings
const sluice = new Sluice({ redis: settings.redis, log: () => {} })
const queue = sluice.queue(settings.queue, settings.options)

function tell(message: ScheduleProcessMessage): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()))
}

process.on('disconnect', () => process.exit())
queue.process('TICK', ({ id }) => tell({ is: 'ran', id }))
for (const [name, missed] of Object.entries(settings.schedules)) {
  await queue.schedules.set(name, { every: settings.everyMs, missed, job: { type: 'TICK', tenant: name } })
}
await tell({ is: 'ready' })
