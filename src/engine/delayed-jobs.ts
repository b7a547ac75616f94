import { abortSignal, checkOptions, oneOf, optional, text } from '../assert.ts'
import { nameRule, toToken } from '../store/names.ts'
import { type DelayReason, delayReasons } from '../store/reasons.ts'
import type { Requests } from '../store/requests.ts'
import { runDelayedJobs } from '../store/scripts/run-delayed-jobs.ts'
import { isUint64 } from '../store/uint64.ts'

/** Which delayed jobs are meant: those that fit all that is given. */
export interface DelayedJobFilter {
  tenant?: string
  type?: string
  /** Name of an action. */
  action?: string
  /** Why they wait. */
  reason?: DelayReason
}

export interface RunDelayedOptions {
  /** Go on where an earlier one with the same filter ended: its `cursor`. */
  cursor?: string
  /** Ends it after the step under way; the answer then has a `cursor`. */
  signal?: AbortSignal
}

export interface RunDelayedSummary {
  /** Jobs looked at. One that moves meanwhile may be looked at twice. */
  readonly looked: number
  /** Jobs made due. */
  readonly due: number
  /** Where to go on; undefined: all were looked at. */
  readonly cursor: string | undefined
}

const name = optional(nameRule)

const filterRules = {
  tenant: name,
  type: name,
  action: name,
  reason: optional(oneOf(delayReasons)),
}

// A step reads the records of those whose place fits: so many blocks Redis for about a millisecond.
const LOOKED_AT_ONCE = 200

export async function runDelayed(
  requests: Requests,
  filter: DelayedJobFilter,
  options: RunDelayedOptions,
): Promise<RunDelayedSummary> {
  const { tenant, type, action, reason } = checkOptions('runDelayed', filter, filterRules)
  const chosen = checkOptions('runDelayed', options, {
    cursor: optional(text({ pattern: { test: isUint64, words: 'the cursor of an earlier answer' } })),
    signal: optional(abortSignal),
  })
  const wanted = { tenant: token(tenant), type: type ?? '', action: token(action), reason: reason ?? '' }
  const summary = { looked: 0, due: 0 }
  let cursor: string | undefined = chosen.cursor ?? '0'
  while (cursor !== undefined && !chosen.signal?.aborted) {
    const step: { cursor: string | undefined; looked: number; due: number } = await runDelayedJobs(requests, {
      cursor,
      looks: LOOKED_AT_ONCE,
      filter: wanted,
    })
    summary.looked += step.looked
    summary.due += step.due
    cursor = step.cursor
  }
  return { ...summary, cursor }
}

function token(given: string | undefined): string {
  return given === undefined ? '' : toToken(given)
}
