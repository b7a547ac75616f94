import type { LetterPlace } from './letter-place.ts'

/** Which letters are meant; empty text means any. Names are tokens. */
export interface LetterFilter {
  readonly tenant: string
  readonly type: string
  readonly action: string
  readonly reason: string
  /** Found in the message of the error. */
  readonly error: string
}

/** A step through the dead letters, oldest first. */
export interface LetterSearch {
  /** It looks at those behind it. */
  readonly after: LetterPlace
  /** µs: letters that died later are left alone. Now at the latest, which '' means, by the server's clock. */
  readonly to: string
  readonly filter: LetterFilter
  readonly looks: number
  readonly most: number
  readonly nowUs?: string
}

export interface SearchReply {
  readonly looked: number
  /** Those that fit. */
  readonly taken: number
  /** The last one it looked at; undefined: all were. */
  readonly last: LetterPlace | undefined
  /** As given, or the moment of this step if that is earlier: for the next one. */
  readonly to: string
  /** Letters that there are now, whatever the filter. */
  readonly left: number
}

export function toSearchArguments({ after, to, filter, looks, most, nowUs }: LetterSearch) {
  return {
    nowGiven: nowUs ?? '',
    from: after.died,
    after: after.jobKey,
    toGiven: to,
    looks,
    most,
    tenantWanted: filter.tenant,
    typeWanted: filter.type,
    actionWanted: filter.action,
    reasonWanted: filter.reason,
    errorWanted: filter.error,
  }
}

export function toSearchReply(reply: readonly unknown[]): SearchReply {
  const [, looked, taken, died, jobKey, to, left] = reply as [string, number, number, string, string, string, number]
  return { looked, taken, last: died === '' ? undefined : { died, jobKey }, to, left }
}
