import type { Requests } from '../requests.ts'
import { countDeadLetters, sweepDeadLetters as script } from '../scripts.generated.ts'

/** Which letters are meant; empty text means any. Names are tokens. */
export interface LetterFilter {
  readonly tenant: string
  readonly type: string
  readonly action: string
  readonly reason: string
  /** Found in the message of the error. */
  readonly error: string
}

/** Where a sweep goes on: letters that died at `from` (µs) or later, without the first `skip` of that moment. */
export interface SweepCursor {
  readonly from: string
  readonly skip: number
}

export interface SweepStep {
  readonly verb: 'retry' | 'discard' | 'count'
  readonly cursor: SweepCursor
  /** µs: letters that died later are left alone; '' means now, by the server's clock. */
  readonly to: string
  readonly filter: LetterFilter
  readonly looks: number
  readonly most: number
  readonly nowUs?: string
}

export interface SweepReply {
  readonly looked: number
  readonly taken: number
  /** Undefined: all were looked at. */
  readonly cursor: SweepCursor | undefined
  /** As given, or what `''` meant: for the next step. */
  readonly to: string
  /** Letters that there are now, whatever the filter. */
  readonly left: number
}

export async function sweepDeadLetters(requests: Requests, step: SweepStep): Promise<SweepReply> {
  const search = {
    nowGiven: step.nowUs ?? '',
    from: step.cursor.from,
    skip: step.cursor.skip,
    toGiven: step.to,
    looks: step.looks,
    most: step.most,
    tenantWanted: step.filter.tenant,
    typeWanted: step.filter.type,
    actionWanted: step.filter.action,
    reasonWanted: step.filter.reason,
    errorWanted: step.filter.error,
  }
  const reply =
    step.verb === 'count'
      ? await requests.run(countDeadLetters, () => search)
      : await requests.run(script, (request) => ({ ...search, request, retries: step.verb === 'retry' ? 1 : 0 }))
  const [, looked, taken, from, skip, to, left] = reply as [string, number, number, string, number, string, number]
  return { looked, taken, cursor: from === '' ? undefined : { from, skip }, to, left }
}
