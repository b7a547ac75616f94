/** Something an operator should know. `event` is stable; the rest depends on it. */
export interface LogEntry {
  readonly level: 'warn' | 'error'
  readonly event: string
  readonly message: string
  readonly [field: string]: unknown
}

export type Log = (entry: LogEntry) => void

/** Unless told otherwise: one line on standard error. */
export const logToStderr: Log = ({ level, event, message }) => {
  process.stderr.write(`sluice ${level} ${event}: ${message}\n`)
}
