import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Problem } from './problem.ts'

const NEWLINE = 10
/**
 * Jobs that have been read and not yet stored are the last ones, some 20,000 at most: of blank lines before them only the
 * number matters.
 */
const REMEMBERED_GAPS = 32_768
/** Lines go out in pieces of about this size: one write for each would cost more than making them. */
const PIECE_CHARACTERS = 16_384

interface ReaderOptions {
  readonly maxLineBytes: number
  /** How long the next piece may be awaited. */
  readonly idleMs: number
  /** Ends reading with what it was aborted with. */
  readonly signal: AbortSignal
}

/**
 * The values of an NDJSON body, one by one. The body is read no faster than the values are taken, and never more of it
 * is held than one piece and one line. Blank lines are passed over.
 */
export class NdjsonReader {
  /** Number of the line that was taken last, from 1. */
  line = 0
  /** Why the values ended before the body did. */
  mistake: unknown
  readonly #stream: IncomingMessage
  readonly #options: ReaderOptions
  #values = 0
  /** Where blank lines came: before which value, and how many there were by then. */
  readonly #gaps: { readonly before: number; readonly blank: number }[] = []

  constructor(stream: IncomingMessage, options: ReaderOptions) {
    this.#stream = stream
    this.#options = options
  }

  /** On which line a value stood. @param index - Of the value, from 0; one of those that were taken last. */
  lineOf(index: number): number {
    return index + 1 + (this.#gaps.findLast(({ before }) => before <= index)?.blank ?? 0)
  }

  #noteBlank(): void {
    const last = this.#gaps.at(-1)
    const gap = { before: this.#values, blank: (last?.blank ?? 0) + 1 }
    if (last?.before === gap.before) this.#gaps.pop()
    this.#gaps.push(gap)
    if (this.#gaps.length >= 2 * REMEMBERED_GAPS) this.#gaps.splice(0, REMEMBERED_GAPS)
  }

  /** Ends at a mistake as at the end of the body, so that whoever takes them keeps what came before it. */
  async *values(): AsyncGenerator<object> {
    try {
      for await (const block of this.#blocks()) {
        for (const line of this.#linesOf(block)) {
          this.line += 1
          if (isLonger(line, this.#options.maxLineBytes)) throw this.#tooLong(this.line)
          if (line.trim() === '') this.#noteBlank()
          else yield this.#parse(line)
        }
      }
    } catch (error) {
      this.mistake = error
    }
  }

  /** Whole lines, many at a time; the last one may lack its end. */
  async *#blocks(): AsyncGenerator<Buffer> {
    const { maxLineBytes } = this.#options
    // A line that has not ended yet, in pieces: joining them again and again would take quadratic time.
    let open: Buffer[] = []
    let openBytes = 0
    for await (const piece of this.#pieces()) {
      const end = piece.lastIndexOf(NEWLINE) + 1
      if (openBytes + (end > 0 ? piece.indexOf(NEWLINE) : piece.length) > maxLineBytes)
        throw this.#tooLong(this.line + 1)
      if (end > 0) {
        yield openBytes > 0 ? Buffer.concat([...open, piece.subarray(0, end)]) : piece.subarray(0, end)
        open = []
        openBytes = 0
      }
      if (end < piece.length) {
        open.push(piece.subarray(end))
        openBytes += piece.length - end
      }
    }
    if (openBytes > 0) yield Buffer.concat(open)
  }

  async *#pieces(): AsyncGenerator<Buffer> {
    // Destroying the request would close the connection, and with it the way to say what was wrong.
    const pieces = this.#stream.iterator({ destroyOnReturn: false })
    try {
      for (;;) {
        const next = await this.#inTime(pieces.next())
        if (next.done) return
        yield next.value as Buffer
      }
    } finally {
      // Without waiting: if a piece is still awaited this happens after it. Else nobody could read the rest away.
      void pieces.return?.()
    }
  }

  /** Not by racing with a promise that stays: that one would keep every piece it ever raced with. */
  #inTime<T>(next: Promise<T>): Promise<T> {
    const { idleMs, signal } = this.#options
    return new Promise((resolve, reject) => {
      const settle = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', onAbort)
      }
      const onAbort = () => {
        settle()
        reject(signal.reason)
      }
      const timer = setTimeout(() => {
        settle()
        reject(new Problem('request-timeout', `Nothing of the body arrived for ${idleMs} ms.`))
      }, idleMs)
      signal.addEventListener('abort', onAbort)
      if (signal.aborted) onAbort()
      next.then(resolve, reject).finally(settle)
    })
  }

  /** Lines are handed out until the bad one is met, as with any other mistake. */
  *#linesOf(block: Buffer): Generator<string> {
    // One check for all lines; which of them is bad matters only when one is.
    const isGood = isUtf8(block)
    yield* split(isGood ? block : block.subarray(0, startOfBadLine(block)))
    if (!isGood) throw badLine(this.line + 1, 'is not UTF-8')
  }

  #parse(line: string): object {
    let value: unknown
    try {
      value = JSON.parse(line)
    } catch {
      throw badLine(this.line, 'is not JSON')
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw badLine(this.line, 'must be an object such as {"type":"SEND","payload":{}}')
    }
    this.#values += 1
    return value
  }

  #tooLong(line: number): Problem {
    return lineProblem('too-large', line, `is longer than ${this.#options.maxLineBytes} bytes`)
  }
}

function split(block: Buffer): string[] {
  const lines = block.toString('utf8').split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

function startOfBadLine(block: Buffer): number {
  for (let start = 0; ; ) {
    const end = block.indexOf(NEWLINE, start)
    if (end < 0 || !isUtf8(block.subarray(start, end))) return start
    start = end + 1
  }
}

/** A character is at most three bytes; counting them is only worth it near the bound. */
function isLonger(line: string, bytes: number): boolean {
  return line.length * 3 > bytes && Buffer.byteLength(line) > bytes
}

export function badLine(line: number, problem: string): Problem {
  return lineProblem('invalid-request', line, problem)
}

function lineProblem(kind: 'invalid-request' | 'too-large', line: number, problem: string): Problem {
  return new Problem(kind, `Line ${line} ${problem}.`, {
    errors: [{ path: `line ${line}`, problem }],
    members: { line },
  })
}

/** Texts of JSON as NDJSON, made no faster than they are read. */
export function textStream(lines: AsyncIterable<string>): Readable {
  return Readable.from(piecesOf(lines), { objectMode: false, highWaterMark: PIECE_CHARACTERS })
}

async function* piecesOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  let piece = ''
  for await (const line of lines) {
    piece += `${line}\n`
    if (piece.length >= PIECE_CHARACTERS) {
      yield piece
      piece = ''
    }
  }
  if (piece !== '') yield piece
}
