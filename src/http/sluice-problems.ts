import {
  type InvalidJobError,
  type InvalidOptionsError,
  isSluiceError,
  type SluiceError,
  type SluiceErrorCode,
} from '../errors.ts'
import { type FieldProblem, Problem, type ProblemKind } from './problem.ts'

/** The one table from Sluice's error codes to what is answered. */
export const kindsOfCodes: Readonly<Record<SluiceErrorCode, ProblemKind>> = {
  SLUICE_INVALID_OPTIONS: 'invalid-request',
  SLUICE_INVALID_JOB: 'invalid-request',
  SLUICE_QUEUE_FULL: 'queue-full',
  SLUICE_UNKNOWN_ACTION: 'not-found',
  SLUICE_UNKNOWN_QUEUE: 'not-found',
  SLUICE_UNKNOWN_SCHEDULE: 'not-found',
  SLUICE_ACTION_CLOSED: 'conflict',
  SLUICE_ACTION_TAKEN: 'conflict',
  SLUICE_LEASE_LOST: 'conflict',
  SLUICE_STORE_UNAVAILABLE: 'unavailable',
  SLUICE_STORE_OUT_OF_MEMORY: 'unavailable',
  SLUICE_TOO_FEW_REPLICAS: 'unavailable',
  SLUICE_UNSUPPORTED_REDIS: 'unavailable',
  SLUICE_STORE_FORMAT: 'unavailable',
  SLUICE_EMBEDDED_REDIS_MISSING: 'unavailable',
  SLUICE_CLOSED: 'unavailable',
  SLUICE_WAITED_TOO_LONG: 'unavailable',
  SLUICE_OUTCOME_UNKNOWN: 'outcome-unknown',
  SLUICE_JOB_TIMEOUT: 'internal',
  SLUICE_AGGREGATE_TIMEOUT: 'internal',
  SLUICE_PERMANENT: 'internal',
  SLUICE_THROTTLED: 'internal',
  SLUICE_UPSTREAM: 'internal',
  SLUICE_SCRIPT: 'internal',
}

/** What is there to try again for: seconds, by what is answered. */
const retryAfterSeconds: Partial<Record<ProblemKind, number>> = {
  'queue-full': 5,
  unavailable: 2,
  'outcome-unknown': 2,
}

/** Undefined for an error that is none of Sluice's, or that must not be shown. */
export function problemOfSluiceError(error: unknown): Problem | undefined {
  if (!isSluiceError(error)) return undefined
  // Undefined for a code of another version of the package.
  const kind: ProblemKind | undefined = kindsOfCodes[error.code]
  if (kind === undefined || kind === 'internal') return undefined
  const retryAfter = retryAfterSeconds[kind]
  return new Problem(kind, detailOf(error, kind), {
    errors: fieldsOf(error),
    members: { code: error.code },
    cause: error,
    ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
  })
}

/** What the store says of itself names hosts and sockets: for the log, not for callers. */
function detailOf(error: SluiceError, kind: ProblemKind): string {
  if (kind === 'outcome-unknown') return 'The store did not answer in time. Look at the state before you try again.'
  if (kind !== 'unavailable') return error.message
  return 'The store does not answer or takes nothing new at the moment. Try again later.'
}

function fieldsOf(error: SluiceError): FieldProblem[] {
  if (error.code === 'SLUICE_INVALID_OPTIONS') {
    return (error as InvalidOptionsError).problems.map(({ path, problem }) => ({ path: `body.${path}`, problem }))
  }
  if (error.code === 'SLUICE_INVALID_JOB') {
    const { index, problem } = error as InvalidJobError
    return [{ path: index === undefined ? 'body' : `body.jobs.${index}`, problem }]
  }
  return []
}
