import { CliError } from './cli-error.ts'
import { nameOfInput, type ReadOptions, readJsonLines } from './ndjson.ts'

/** Each job of a file as a line of JSON, as the server takes it. */
export async function* readJobLines(
  path: string,
  { isPayload, ...options }: { isPayload: boolean } & ReadOptions,
): AsyncGenerator<string> {
  for await (const { line, value } of readJsonLines(path, options)) {
    if (isPayload) yield `${JSON.stringify({ payload: value })}\n`
    else if (typeof value === 'object' && value !== null && 'payload' in value) yield `${JSON.stringify(value)}\n`
    else {
      throw new CliError(
        'usage',
        `${nameOfInput(path)}:${line}: is no job such as {"payload":{…}}; if each line is the payload itself, add --payloads`,
      )
    }
  }
}

/** A write to the network for each line would cost more than the line. */
const CHUNK_CHARACTERS = 65_536

export async function* inChunks(lines: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  let chunk = ''
  for await (const line of lines) {
    chunk += line
    if (chunk.length < CHUNK_CHARACTERS) continue
    yield encoder.encode(chunk)
    chunk = ''
  }
  if (chunk !== '') yield encoder.encode(chunk)
}
