/** Which letters are meant; empty text means any. Names are tokens. */
export interface LetterFilter {
  readonly tenant: string
  readonly type: string
  readonly action: string
  readonly reason: string
  /** Found in the message of the error. */
  readonly error: string
}

/** Where a search goes on: letters that died at `from` (µs) or later, without the first `skip` of that moment. */
export interface SearchCursor {
  readonly from: string
  readonly skip: number
}

/** A step through the dead letters, oldest first. */
export interface LetterSearch {
  readonly cursor: SearchCursor
  /** µs: letters that died later are left alone; '' means now, by the server's clock. */
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
  /** Undefined: all were looked at. */
  readonly cursor: SearchCursor | undefined
  /** As given, or what `''` meant: for the next step. */
  readonly to: string
  /** Letters that there are now, whatever the filter. */
  readonly left: number
}

export function toSearchArguments({ cursor, to, filter, looks, most, nowUs }: LetterSearch) {
  return {
    nowGiven: nowUs ?? '',
    from: cursor.from,
    skip: cursor.skip,
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
  const [, looked, taken, from, skip, to, left] = reply as [string, number, number, string, number, string, number]
  return { looked, taken, cursor: from === '' ? undefined : { from, skip }, to, left }
}
