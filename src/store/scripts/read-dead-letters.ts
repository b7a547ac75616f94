import type { QueueKeys } from '../keys.ts'
import type { LetterPlace } from '../letter-place.ts'
import type { DeadReason } from '../reasons.ts'
import { type JobRecord, readRecord } from '../record.ts'
import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { readDeadLetters as script } from '../scripts.generated.ts'

// A page holds no more than a claim's reply.
const MAX_BYTES = 1_000_000

export interface FoundLetter {
  readonly jobKey: string
  readonly diedAt: number
  readonly reason: DeadReason
  readonly record: JobRecord
}

export interface FoundLetters {
  readonly total: number
  /** In the order of the list. No letter: only its instant is left, which the audit puts right. */
  readonly rows: readonly { readonly place: LetterPlace; readonly letter: FoundLetter | undefined }[]
  /** Others follow. */
  readonly isMore: boolean
}

/** Newest first. They are fewer than `count`, though more follow, where these are large. */
export async function readDeadLetters(
  redis: Redis,
  keys: QueueKeys,
  page: { after: LetterPlace | undefined; count: number; nowUs?: string },
): Promise<FoundLetters> {
  const reply = await runScript(redis, script, keys, {
    nowGiven: page.nowUs ?? '',
    afterDied: page.after?.died ?? '',
    afterJob: page.after?.jobKey ?? '',
    count: page.count,
    maxBytes: MAX_BYTES,
  })
  const [, total, isMore, flat] = reply as ['letters', number, number, (string | null)[]]
  const rows = Array.from({ length: flat.length / 3 }, (_, at) => {
    const [jobKey, died, text] = flat.slice(3 * at, 3 * at + 3) as [string, string, string | null]
    return { place: { died, jobKey }, letter: text === null ? undefined : decodeLetter(jobKey, died, text) }
  })
  return { total, rows, isMore: isMore === 1 }
}

/** `<died at, ms>,<reason>\n<record>`. One that is damaged is all record, which nobody can read. */
function decodeLetter(jobKey: string, died: string, text: string): FoundLetter {
  const [head, diedAt, reason] = /^(\d+),([^\n]*)\n/.exec(text) ?? []
  if (head === undefined) {
    return { jobKey, diedAt: Math.floor(Number(died) / 1000), reason: 'unreadable', record: readRecord(text) }
  }
  return {
    jobKey,
    diedAt: Number(diedAt),
    // No script writes another.
    reason: reason as DeadReason,
    record: readRecord(text.slice(head.length)),
  }
}
