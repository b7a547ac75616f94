import { readPayload } from '../bulk/http-request/payload.ts'
import { InvalidJobError } from '../errors.ts'
import type { NdjsonReader } from './ndjson.ts'

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

/** The same for each of a stream: it ends at one that is refused, so that whoever takes them keeps what came before it. */
export async function* checkedBuiltIns(reader: NdjsonReader, type: string | undefined): AsyncGenerator<object> {
  let index = 0
  for await (const job of reader.values()) {
    try {
      checkBuiltIn(job, type, index++)
    } catch (error) {
      reader.mistake = error
      return
    }
    yield job
  }
}
