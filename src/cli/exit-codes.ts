import type { SluiceErrorCode } from '../errors.ts'

/**
 * What the process says when it ends. Scripts depend on these numbers: they do not change, and new ones are added at
 * the end. docs/cli.md has the same table, and a test compares the two.
 */
export const exitCodes = {
  ok: { code: 0, meaning: 'done, and nothing failed' },
  unexpected: { code: 1, meaning: 'something nobody expected; run again with --debug for the stack' },
  usage: { code: 2, meaning: 'the command, an option, a file or a value cannot be used as given' },
  notFound: { code: 3, meaning: 'there is no such thing' },
  conflict: { code: 4, meaning: 'it is in a state that does not allow this' },
  failedJobs: { code: 5, meaning: 'finished, with failed jobs' },
  canceled: { code: 6, meaning: 'the action was cancelled' },
  waitedTooLong: { code: 7, meaning: 'it did not end within the time given' },
  unreachable: { code: 8, meaning: 'a server that is needed does not answer' },
  notAllowed: { code: 9, meaning: 'the key is missing, wrong, or may not do this' },
  rateLimited: { code: 10, meaning: 'the server takes no more calls just now' },
  interrupted: { code: 130, meaning: 'ended by Ctrl-C (SIGINT)' },
  terminated: { code: 143, meaning: 'ended by SIGTERM' },
} as const

export type ExitName = keyof typeof exitCodes

/** Which of them an error of the library is. */
const exitOfErrorCode: Readonly<Record<SluiceErrorCode, ExitName>> = {
  SLUICE_INVALID_OPTIONS: 'usage',
  SLUICE_INVALID_JOB: 'usage',
  SLUICE_QUEUE_FULL: 'conflict',
  SLUICE_STORE_UNAVAILABLE: 'unreachable',
  SLUICE_STORE_OUT_OF_MEMORY: 'unreachable',
  SLUICE_TOO_FEW_REPLICAS: 'unreachable',
  SLUICE_UNSUPPORTED_REDIS: 'unreachable',
  SLUICE_STORE_FORMAT: 'conflict',
  SLUICE_EMBEDDED_REDIS_MISSING: 'unreachable',
  SLUICE_OUTCOME_UNKNOWN: 'unreachable',
  SLUICE_LEASE_LOST: 'conflict',
  SLUICE_CLOSED: 'unexpected',
  SLUICE_ACTION_CLOSED: 'conflict',
  SLUICE_ACTION_TAKEN: 'conflict',
  SLUICE_UNKNOWN_ACTION: 'notFound',
  SLUICE_UNKNOWN_QUEUE: 'notFound',
  SLUICE_UNKNOWN_SCHEDULE: 'notFound',
  SLUICE_WAITED_TOO_LONG: 'waitedTooLong',
  SLUICE_JOB_TIMEOUT: 'waitedTooLong',
  SLUICE_AGGREGATE_TIMEOUT: 'waitedTooLong',
  SLUICE_PERMANENT: 'failedJobs',
  SLUICE_THROTTLED: 'rateLimited',
  SLUICE_UPSTREAM: 'unreachable',
  SLUICE_SCRIPT: 'unexpected',
}

export function exitOfSluiceError(code: SluiceErrorCode): ExitName {
  // Of a newer copy of the package, a code may not be in the table.
  return exitOfErrorCode[code] ?? 'unexpected'
}

/** Which of them an answer of the HTTP API is. */
export function exitOfStatus(status: number): ExitName {
  switch (status) {
    case 401:
    case 403:
      return 'notAllowed'
    case 404:
    case 410:
      return 'notFound'
    case 409:
      return 'conflict'
    case 429:
      return 'rateLimited'
    case 502:
    case 503:
    case 504:
      return 'unreachable'
    default:
      return status >= 400 && status < 500 ? 'usage' : 'unexpected'
  }
}
