import { Logger } from '@nestjs/common'
import type { Log } from '../engine/log.ts'

/** To the application's own log, under the name of Sluice. */
export const logger = new Logger('Sluice')

export const nestLog: Log = ({ level, event, message, error }) => {
  const line = `${event}: ${message}`
  const stack = error instanceof Error ? error.stack : undefined
  if (level === 'error') logger.error(line, stack)
  else if (level === 'info') logger.log(line)
  // A warning has no place for a stack of its own.
  else logger.warn(stack === undefined ? line : `${line}\n${stack}`)
}
