/** Something that is not as it should be. */
export interface Difference {
  /** What differs: `tenant.waiting`, `ready.normal.missing`, … */
  readonly kind: string
  /** The tenant, job, lane, action or claim it is about; empty for the queue's own counts. */
  readonly subject: string
  readonly expected: string
  readonly found: string
}

/** What a step of the audit has found. */
export interface Audited {
  readonly differences: readonly Difference[]
  /** What there is too much of to be looked at in one script. */
  readonly skipped: readonly string[]
  /** For how long nobody has claimed anything of the queue. */
  readonly quietMs: number
}

type EncodedDifference = [kind: string, subject: string, expected: string, found: string]

/** `{"audited", quiet, differences, …}` or `{"skipped", quiet, what}`. */
export function decodeAudited(reply: readonly unknown[]): Audited {
  const [word, quietUs, told] = reply as [string, string, EncodedDifference[] | string]
  const quietMs = Number(quietUs) / 1_000
  if (word === 'skipped') return { differences: [], skipped: [told as string], quietMs }
  const differences = (told as EncodedDifference[]).map(([kind, subject, expected, found]) => ({
    kind,
    subject,
    expected,
    found,
  }))
  return { differences, skipped: [], quietMs }
}

/** How a step is asked for. */
export interface AuditMode {
  /** Put right what differs; false only looks. */
  readonly isRepairing: boolean
  /** For tests: instead of the server's time. */
  readonly nowUs?: string
}

/** What all of these scripts take. */
export function modeArguments({ isRepairing, nowUs }: AuditMode): { nowGiven: string; repairs: number } {
  return { nowGiven: nowUs ?? '', repairs: isRepairing ? 1 : 0 }
}
