import { Logger } from '@nestjs/common'
import type { Middleware } from 'sluice'

const logger = new Logger('Jobs')

export const logJobs: Middleware = async (job, _context, next) => {
  const start = performance.now()
  try {
    return await next()
  } catch (error) {
    logger.warn(`${job.type} of ${job.tenant} failed: ${String(error)}`)
    throw error
  } finally {
    logger.log(`${job.type} of ${job.tenant} took ${Math.round(performance.now() - start)} ms`)
  }
}
