import { isSluiceError, type ThrottledError } from '../errors.ts'

const brand = Symbol.for('sluice.outcome')
const origin = Symbol.for('sluice.outcome.origin')

/**
 * What a handler can answer besides success. Return it, or throw `PermanentError` and `ThrottledError` from deep inside.
 */
export interface Outcome {
  // An interface, not a union of two: what a method of an exported class returns must have a name in its declaration.
  readonly [brand]: 'discard' | 'throttled'
  readonly reason?: string
  readonly retryAfterMs?: number | undefined
}

/** The job will not succeed: a dead letter now, without another try. */
export function discard(reason: string): Outcome {
  const error = new Error(reason)
  // The stack of the dead letter begins where the handler says so, not in here.
  Error.captureStackTrace(error, discard)
  // Not to be seen by whoever compares outcomes: it differs from place to place.
  return Object.defineProperty({ [brand]: 'discard' as const, reason }, origin, { value: error })
}

/**
 * The upstream pushed back: the job comes again without costing a retry, after `retryAfterMs` if the upstream said so.
 */
export function throttled(options: { retryAfterMs?: number | undefined } = {}): Outcome {
  return { [brand]: 'throttled', retryAfterMs: options.retryAfterMs }
}

/** How a run ended, from whatever the handler returned or threw. */
export type RunResult =
  | { readonly kind: 'succeeded'; readonly value?: unknown }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'discarded'; readonly error: unknown }
  | { readonly kind: 'throttled'; readonly retryAfterMs: number | undefined }

const succeeded: RunResult = { kind: 'succeeded' }

export function resultOfReturn(value: unknown): RunResult {
  if (value === undefined) return succeeded
  if (typeof value !== 'object' || value === null || !(brand in value)) return { kind: 'succeeded', value }
  const outcome = value as Outcome
  if (outcome[brand] === 'throttled') return { kind: 'throttled', retryAfterMs: outcome.retryAfterMs }
  return { kind: 'discarded', error: (outcome as { [origin]?: Error })[origin] ?? new Error(outcome.reason) }
}

/**
 * What a run comes to that returns this: for middleware, whose `next()` resolves to what the handler returned. A handler that
 * throws makes `next()` reject instead.
 */
export function outcomeOf(returned: unknown): 'succeeded' | 'discarded' | 'throttled' {
  return resultOfReturn(returned).kind as 'succeeded' | 'discarded' | 'throttled'
}

export function resultOfThrow(error: unknown): RunResult {
  if (isSluiceError(error)) {
    if (error.code === 'SLUICE_PERMANENT') return { kind: 'discarded', error }
    if (error.code === 'SLUICE_THROTTLED') {
      // By its code, not by its class: it may come from another copy of the package.
      return { kind: 'throttled', retryAfterMs: (error as ThrottledError).retryAfterMs }
    }
  }
  return { kind: 'failed', error }
}
