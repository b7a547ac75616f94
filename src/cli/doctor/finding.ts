/** What a check says: all is well, something will hurt one day, or it does not work like this. */
type Verdict = 'ok' | 'warning' | 'failure'

/** One thing that was looked at. */
export interface Finding {
  /** What was looked at: `redis version`. */
  readonly check: string
  readonly verdict: Verdict
  /** What was found, in one line. */
  readonly found: string
  /** What to do; missing where nothing has to be done. */
  readonly fix?: string
}

export function ok(check: string, found: string): Finding {
  return { check, verdict: 'ok', found }
}

export function warning(check: string, found: string, fix: string): Finding {
  return { check, verdict: 'warning', found, fix }
}

export function failure(check: string, found: string, fix: string): Finding {
  return { check, verdict: 'failure', found, fix }
}
