/** All that is said, by its stable name. docs/errors.md has what each means and what to do. */
export const logEvents = [
  'store.away',
  'store.back',
  'worker.exchange-failed',
  'worker.leases-unrenewed',
  'worker.wake-ups-unheard',
  'worker.untellable-job',
  'worker.close-unconfirmed',
  'worker.unknown-type',
  'worker.unknown-upstream',
  'job.unreadable',
  'limits.allowed-uncounted',
  'congestion.unrecorded',
  'schedules.failed',
  'schedules.full',
  'schedules.lost',
  'schedule.unreadable',
  'schedule.gone',
  'aggregate.failed',
  'webhook.failed',
  'seal.failed',
  'free.failed',
  'duty.failed',
  'duty.unconfirmed',
  'audit.repaired',
  'audit.failed',
  'events.unread',
] as const

export type LogEvent = (typeof logEvents)[number]

/** Something an operator should know. `event` is stable; the rest depends on it. `error` is what was thrown, if anything was. */
export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error'
  readonly event: LogEvent
  readonly message: string
  readonly [field: string]: unknown
}

export type Log = (entry: LogEntry) => void

/** What a log throws is no reason for a worker to end: the entry goes to standard error then. */
export function guardedLog(log: Log): Log {
  return (entry) => {
    try {
      log(entry)
    } catch {
      logToStderr(entry)
    }
  }
}

/** Unless told otherwise: one line on standard error. */
export const logToStderr: Log = ({ level, event, message, error }) => {
  const [reason = ''] = String(error instanceof Error ? error.message : (error ?? '')).split('\n')
  // Some messages have it already.
  const told = reason === '' || message.includes(reason) ? message : `${message} (${reason})`
  process.stderr.write(`sluice ${level} ${event}: ${told}\n`)
}
