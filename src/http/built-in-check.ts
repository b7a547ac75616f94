import { readPayload } from '../bulk/http-request/payload.ts'
import { InvalidJobError } from '../errors.ts'

/** The type of the processor that comes with the server. */
const CALL = 'http.request'

/** Only the process that sends it knows how large a body may be. */
const settings = { maxRequestBytes: Number.POSITIVE_INFINITY, userAgent: '' }

/**
 * A job of the built-in type whose payload can never be sent is refused when it is submitted, not when it has come to its turn.
 * Types of others take what they like.
 * @param type - What jobs without one are of.
 */
export function checkBuiltIn(job: object, type: string | undefined, index?: number): void {
  const { type: own, payload, id } = job as { type?: unknown; payload?: unknown; id?: unknown }
  if ((own ?? type) !== CALL) return
  try {
    readPayload(payload, settings)
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    throw new InvalidJobError({ problem, index, jobId: typeof id === 'string' ? id : undefined, cause: error })
  }
}

/** The same for each of a stream. */
export async function* checkedBuiltIns<Job extends object>(
  jobs: AsyncIterable<Job>,
  type: string | undefined,
): AsyncGenerator<Job> {
  let index = 0
  for await (const job of jobs) {
    checkBuiltIn(job, type, index++)
    yield job
  }
}
