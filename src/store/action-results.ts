import type { QueueKeys } from './keys.ts'
import { actionKeys } from './keys.ts'
import { decodeRecord, type JobRecord } from './record.ts'
import type { Redis } from './redis.ts'
import { repeatWhileUnavailable } from './repeat.ts'

// One page of a result or letter list: bounded, so that neither Redis nor the reader holds much at once.
const PAGE = 500
// Results are read as many at once as will probably have so many bytes; the first few tell how large they are.
const PAGE_BYTES = 1_000_000
const FIRST_RESULTS = 16
const RESULTS_FOR_MS = 30_000

interface Source {
  readonly redis: Redis
  readonly keys: QueueKeys
  /** Tokens. */
  readonly tenant: string
  readonly name: string
}

/** Lines of the results, in the order in which the jobs ended. */
export async function* resultsByFinish(source: Source): AsyncGenerator<string> {
  for await (const sequences of pagesOf(source, 'finished')) yield* linesOf(source, sequences)
}

/**
 * Lines of the results in the order of the jobs: those of the lane by their numbers, then those that were submitted with a
 * delay. @param numbers - Of the lane: from `first` up to, not including, `next`.
 */
export async function* resultsByJob(source: Source, numbers: { first: number; next: number }): AsyncGenerator<string> {
  for (let from = numbers.first; from < numbers.next && from > 0; from += PAGE) {
    const count = Math.min(PAGE, numbers.next - from)
    yield* linesOf(
      source,
      Array.from({ length: count }, (_, at) => String(from + at)),
    )
  }
  // As numbers, which take eight bytes each: a million jobs with a delay are eight megabytes, not eighty.
  const later: number[] = []
  for await (const sequences of pagesOf(source, 'finished')) {
    for (const sequence of sequences) if (sequence.startsWith('0')) later.push(Number(sequence))
  }
  later.sort((a, b) => a - b)
  for (let from = 0; from < later.length; from += PAGE) {
    yield* linesOf(
      source,
      later.slice(from, from + PAGE).map((sequence) => `0${sequence}`),
    )
  }
}

export interface ActionLetter {
  readonly jobKey: string
  readonly record: JobRecord
  readonly payload: unknown
}

/** Jobs of the action that are dead letters now, some at once; but none that cannot be read. */
export async function* lettersOf(source: Source): AsyncGenerator<ActionLetter[]> {
  for await (const jobKeys of pagesOf(source, 'letters')) {
    const texts = (await read(source, 'HMGET', [source.keys.deadJobs, ...jobKeys])) as (string | null)[]
    yield jobKeys.flatMap((jobKey, at) => {
      const text = texts[at] ?? null
      return text === null ? [] : decodeLetter(jobKey, text)
    })
  }
}

/** `<died at, ms>,<reason>\n<record>` */
function decodeLetter(jobKey: string, text: string): ActionLetter | [] {
  try {
    const record = decodeRecord(text.slice(text.indexOf('\n') + 1))
    return { jobKey, record, payload: JSON.parse(record.payload) as unknown }
  } catch {
    return []
  }
}

/** Somebody may be in the middle of a long download: a connection that comes back is waited for. */
function read({ redis }: Source, command: string, args: readonly (string | number)[]): Promise<unknown> {
  return repeatWhileUnavailable(() => redis.callWith(command, args), RESULTS_FOR_MS)
}

async function* linesOf(source: Source, sequences: readonly string[]): AsyncGenerator<string> {
  const { results } = actionKeys(source.keys, source.tenant, source.name)
  let count = FIRST_RESULTS
  for (let from = 0, to = 0; from < sequences.length; from = to) {
    to = from + count
    const lines = (await read(source, 'HMGET', [results, ...sequences.slice(from, to)])) as (string | null)[]
    const found = lines.filter((line) => line !== null)
    yield* found
    const largest = found.reduce((most, line) => Math.max(most, line.length), 0)
    count = Math.max(1, Math.min(PAGE, Math.floor(PAGE_BYTES / Math.max(1, largest))))
  }
}

async function* pagesOf(source: Source, list: 'finished' | 'letters'): AsyncGenerator<string[]> {
  const key = actionKeys(source.keys, source.tenant, source.name)[list]
  for (let from = 0; ; from += PAGE) {
    const page = (await read(source, 'LRANGE', [key, from, from + PAGE - 1])) as string[]
    if (page.length > 0) yield page
    if (page.length < PAGE) return
  }
}
