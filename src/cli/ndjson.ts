import { createReadStream } from 'node:fs'
import { addAbortSignal, type Readable } from 'node:stream'
import { CliError } from './cli-error.ts'

/** One line of a file of JSON documents. */
export interface JsonLine {
  /** From 1, empty lines counted. */
  readonly line: number
  readonly value: unknown
}

/** A line longer than this is no job, and a file without line ends must not fill the memory. */
const LONGEST_LINE_BYTES = 16 * 1024 * 1024

export interface ReadOptions {
  /** Sees the file as it is. */
  readonly onBytes?: (chunk: Buffer) => void
  /** Ends the reading; standard input would otherwise be waited for. */
  readonly signal?: AbortSignal
}

/** Opens a file, or standard input for `-`. */
function openInput(path: string, signal: AbortSignal | undefined): Readable {
  const input = path === '-' ? process.stdin : createReadStream(path)
  return signal === undefined ? input : addAbortSignal(signal, input)
}

/** What to call it in messages. */
export function nameOfInput(path: string): string {
  return path === '-' ? 'standard input' : path
}

/** Each non-empty line as JSON; refuses the first that is none. */
export async function* readJsonLines(path: string, options: ReadOptions = {}): AsyncGenerator<JsonLine> {
  const name = nameOfInput(path)
  let line = 0
  for await (const text of readLines(path, options)) {
    line += 1
    // A byte order mark is what some editors put before the first line.
    const trimmed = (line === 1 ? text.replace(/^\uFEFF/, '') : text).trim()
    if (trimmed === '') continue
    yield { line, value: parseLine(trimmed, `${name}:${line}`) }
  }
}

function parseLine(text: string, place: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('usage', `${place}: is not JSON (${(error as Error).message}); give one JSON document a line`)
  }
}

async function* readLines(path: string, { onBytes, signal }: ReadOptions): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let rest = ''
  try {
    for await (const chunk of openInput(path, signal) as AsyncIterable<Buffer>) {
      onBytes?.(chunk)
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > LONGEST_LINE_BYTES) {
        throw new CliError('usage', `${nameOfInput(path)}: has a line of more than ${LONGEST_LINE_BYTES} bytes`)
      }
      yield* lines
    }
    rest += decoder.decode()
  } catch (error) {
    throw readError(error, path)
  }
  if (rest !== '') yield rest
}

function readError(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
    return new CliError('usage', `${nameOfInput(path)}: is not UTF-8; convert it first`)
  }
  if (code === 'ENOENT') return new CliError('usage', `${path}: there is no such file`)
  if (code === 'EISDIR') return new CliError('usage', `${path}: is a folder; give a file of JSON lines`)
  if (code === 'EACCES') return new CliError('usage', `${path}: may not be read`)
  return error
}
