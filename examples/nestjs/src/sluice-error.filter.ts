import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { isSluiceError } from 'sluice'

const statusOf: Record<string, number> = {
  SLUICE_STORE_UNAVAILABLE: 503, // Redis did not answer
  SLUICE_OUTCOME_UNKNOWN: 503, // it may have been stored: with ids of your own, try again
  SLUICE_QUEUE_FULL: 503,
  SLUICE_INVALID_JOB: 400,
  SLUICE_INVALID_OPTIONS: 400, // a rate or a tenant's name, say
}

/** Whatever else is thrown is answered as ever. */
@Catch()
export class SluiceErrorFilter extends BaseExceptionFilter implements ExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost) {
    const isTimeout = error instanceof Error && error.name === 'TimeoutError' // of AbortSignal.timeout
    const status = isTimeout ? 503 : isSluiceError(error) ? statusOf[error.code] : undefined
    if (status === undefined) return super.catch(error, host)
    super.catch(new HttpException({ statusCode: status, message: (error as Error).message }, status), host)
  }
}
