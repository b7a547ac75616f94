/** Something an operator should know. `event` is stable; the rest depends on it. `error` is what was thrown, if anything was. */
export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error'
  readonly event: string
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
