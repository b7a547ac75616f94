import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { isSluiceError } from 'sluice'

/** As the server of sluice/http answers them. What is not here is a 500. */
const statusOf: Record<string, number> = {
  SLUICE_INVALID_JOB: 400,
  SLUICE_INVALID_OPTIONS: 400, // a rate or a tenant's name, say
  SLUICE_UNKNOWN_ACTION: 404,
  SLUICE_UNKNOWN_QUEUE: 404,
  SLUICE_UNKNOWN_SCHEDULE: 404,
  SLUICE_ACTION_CLOSED: 409, // it has all its jobs, or has ended
  SLUICE_ACTION_TAKEN: 409,
  SLUICE_LEASE_LOST: 409,
  SLUICE_QUEUE_FULL: 429,
  SLUICE_STORE_UNAVAILABLE: 503, // Redis did not answer
  SLUICE_STORE_OUT_OF_MEMORY: 503,
  SLUICE_TOO_FEW_REPLICAS: 503,
  SLUICE_UNSUPPORTED_REDIS: 503,
  SLUICE_STORE_FORMAT: 503,
  SLUICE_EMBEDDED_REDIS_MISSING: 503,
  SLUICE_CLOSED: 503, // the application shuts down
  SLUICE_WAITED_TOO_LONG: 503,
  SLUICE_OUTCOME_UNKNOWN: 504, // it may have been stored: with ids of your own, try again
}

/** Whatever else is thrown is answered as ever. */
@Catch()
export class SluiceErrorFilter extends BaseExceptionFilter implements ExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost) {
    const code = isSluiceError(error) ? error.code : undefined
    const isTimeout = error instanceof Error && error.name === 'TimeoutError' // of AbortSignal.timeout
    const status = isTimeout ? 503 : statusOf[code ?? '']
    if (status === undefined) return super.catch(error, host)
    // What Redis says names hosts: not for callers.
    const message = status < 500 ? (error as Error).message : 'Not available at the moment. Try again later.'
    super.catch(new HttpException({ statusCode: status, code, message }, status), host)
  }
}
