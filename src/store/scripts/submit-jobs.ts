import type { Requests } from '../requests.ts'
import { submitJobs as script } from '../scripts.generated.ts'

/** Jobs of one lane. The entries are flat: what each job takes depends on the kind. */
export interface SubmitLine {
  readonly tenant: string
  readonly level: string
  readonly lane: string
  readonly basePriority: number | undefined
  /**
   * `fresh`: record. `named`: digest of the given id, record. `later`: when (`+µs` from now, `@µs` since 1970), digest
   * or '', record.
   */
  readonly kind: LineKind
  readonly entries: readonly string[]
  /** Some of its jobs cost more than one permit: until somebody says so, nobody looks at what jobs cost. */
  readonly hasCosts: boolean
}

export type LineKind = 'fresh' | 'named' | 'later'

/** How many entries a job takes. */
export const entriesPerJob: Readonly<Record<LineKind, number>> = { fresh: 1, named: 2, later: 3 }

export interface SubmitReply {
  readonly accepted: number
  /** Jobs whose id was known. */
  readonly duplicates: number
  /** The first sequence given in each line; '0' where none was. */
  readonly firsts: readonly string[]
  /** Lines that did not fit whole: which, and how many of their jobs were dealt with. */
  readonly full: readonly { readonly line: number; readonly dealtWith: number }[]
  /** Lines whose action takes no more jobs; nothing of them was stored. */
  readonly closed: readonly number[]
  /** A job that a limit could never grant; nothing was stored then. */
  readonly costly: CostlyJob | undefined
}

export interface CostlyJob {
  readonly line: number
  readonly job: number
  readonly limit: string
  readonly most: number
}

export async function submitJobs(
  requests: Requests,
  lines: readonly SubmitLine[],
  options: { nowUs?: string; signal?: AbortSignal | undefined } = {},
): Promise<SubmitReply> {
  const list: (string | number)[] = []
  for (const line of lines) {
    const { tenant, level, lane, basePriority = '', kind, entries } = line
    list.push(tenant, level, lane, basePriority, kind, entries.length / entriesPerJob[kind])
    for (const entry of entries) list.push(entry)
  }
  const hasCosts = lines.some((line) => line.hasCosts) ? 1 : 0
  const args = (request: number) => ({ nowGiven: options.nowUs ?? '', request, hasCosts, lines: list })
  const reply = await requests.run(script, args, { signal: options.signal })
  if (reply[0] === 'costly') {
    const [, line, job, limit, most] = reply as ['costly', number, number, string, number]
    return { accepted: 0, duplicates: 0, firsts: [], full: [], closed: [], costly: { line, job, limit, most } }
  }
  type Accepted = ['accepted', number, number, string[], number[], number[]]
  const [, accepted, duplicates, firsts, full, closed] = reply as Accepted
  return { accepted, duplicates, firsts, full: pairs(full), closed, costly: undefined }
}

function pairs(flat: readonly number[]): { line: number; dealtWith: number }[] {
  const found = []
  for (let at = 0; at < flat.length; at += 2) found.push({ line: flat[at] ?? 0, dealtWith: flat[at + 1] ?? 0 })
  return found
}
