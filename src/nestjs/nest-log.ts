import { Logger } from '@nestjs/common'
import type { Log } from '../engine/log.ts'

/** To the application's own log, under the name of Sluice. */
export const logger = new Logger('Sluice')

export const nestLog: Log = ({ level, event, message, error }) => {
  const line = `${event}: ${message}`
  if (level === 'warn') logger.warn(line)
  else logger.error(line, error instanceof Error ? error.stack : undefined)
}
