import type { QueueKeys } from '../keys.ts'
import type { DeadReason } from '../reasons.ts'
import { type JobRecord, readRecord } from '../record.ts'
import type { Redis } from '../redis.ts'
import { runScript } from '../script.ts'
import { readDeadLetters as script } from '../scripts.generated.ts'

export interface FoundLetter {
  readonly jobKey: string
  readonly diedAt: number
  readonly reason: DeadReason
  readonly record: JobRecord
}

/** Newest first. */
export async function readDeadLetters(
  redis: Redis,
  keys: QueueKeys,
  page: { from: number; count: number; nowUs?: string },
): Promise<{ total: number; letters: FoundLetter[] }> {
  const { from, count, nowUs: nowGiven = '' } = page
  const reply = await runScript(redis, script, keys, { nowGiven, from, count })
  const [, total, flat] = reply as ['letters', number, string[]]
  const letters: FoundLetter[] = []
  for (let at = 0; at < flat.length; at += 2) {
    const letter = decodeLetter(flat[at] as string, flat[at + 1] as string)
    if (letter) letters.push(letter)
  }
  return { total, letters }
}

/** `<died at, ms>,<reason>\n<record>` */
function decodeLetter(jobKey: string, text: string): FoundLetter | undefined {
  const comma = text.indexOf(',')
  const end = text.indexOf('\n')
  if (comma < 0 || end < 0) return undefined
  return {
    jobKey,
    diedAt: Number(text.slice(0, comma)),
    // No script writes another.
    reason: text.slice(comma + 1, end) as DeadReason,
    record: readRecord(text.slice(end + 1)),
  }
}
