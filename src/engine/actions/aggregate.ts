import { integer } from '../../assert.ts'
import type { Clock } from '../../clock.ts'
import { AggregateTimeoutError, PermanentError } from '../../errors.ts'
import { unlessAborted } from '../unless-aborted.ts'
import type { JobResult } from './action.ts'

/** What an aggregate gets beside the results. */
export interface AggregateContext {
  /**
   * Aborted when it takes too long, its action has been cancelled, another process has it by now, or this one must stop;
   * `reason` says which. The results end with it, too.
   */
  readonly signal: AbortSignal
}

/**
 * Makes one result of all results of an action. It may run again after a crash; what it returns is stored once. Throwing
 * has it tried again, four times in all; a `PermanentError` fails the action at once.
 */
export type Aggregate = (results: AsyncIterable<JobResult>, context: AggregateContext) => unknown

/** Options of `queue.aggregate`. */
export interface AggregateOptions {
  /**
   * How long it may take. After that its signal is aborted and the try counts as failed: one that hangs does not keep its
   * action, and those behind it, for ever.
   * @default 600_000
   */
  timeoutMs?: number
  /**
   * The largest aggregate, as JSON in bytes: it is stored with the action and read whenever its summary is. A larger one
   * fails the action.
   * @default 1_048_576
   */
  maxBytes?: number
}

export const aggregateRules = {
  timeoutMs: integer({ min: 1, max: 86_400_000, default: 600_000 }),
  maxBytes: integer({ min: 2, max: 64 * 1024 * 1024, default: 1_048_576 }),
}

export interface RegisteredAggregate {
  readonly type: string
  readonly make: Aggregate
  readonly timeoutMs: number
  readonly maxBytes: number
}

/** JSON of what the aggregate makes of the results. @param stop - Whoever gives it up aborts this. */
export async function makeAggregate(
  { type, make, timeoutMs, maxBytes }: RegisteredAggregate,
  results: AsyncIterable<JobResult>,
  { clock, stop }: { clock: Clock; stop: AbortController },
): Promise<string> {
  const { signal } = stop
  const cancel = clock.setTimer(() => stop.abort(new AggregateTimeoutError({ type, timeoutMs })), timeoutMs)
  try {
    const made = Promise.resolve().then(() => make(endedBy(signal, results), { signal }))
    return asJson(type, await unlessAborted(made, signal), maxBytes)
  } finally {
    cancel()
  }
}

/** An aggregate that only reads stops by itself, whether it knows of signals or not. */
async function* endedBy(signal: AbortSignal, results: AsyncIterable<JobResult>): AsyncGenerator<JobResult> {
  for await (const result of results) {
    signal.throwIfAborted()
    yield result
  }
}

/** Neither a value that is no JSON nor one that is too large gets better when it is made again. */
function asJson(type: string, value: unknown, maxBytes: number): string {
  let text: string
  try {
    text = JSON.stringify(value ?? null) ?? 'null'
  } catch (error) {
    throw new PermanentError(`The aggregate of type "${type}" is no JSON: ${(error as Error).message}`)
  }
  const bytes = Buffer.byteLength(text)
  if (bytes <= maxBytes) return text
  throw new PermanentError(
    `The aggregate of type "${type}" has ${bytes} bytes as JSON, more than maxBytes (${maxBytes}) allows: return less, store it elsewhere and return where, or allow more.`,
  )
}
