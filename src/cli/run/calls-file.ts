import { createHash } from 'node:crypto'
import { realpath } from 'node:fs/promises'
import { type HttpRequestPayload, readPayload } from '../../bulk/http-request/payload.ts'
import { Refusal } from '../../bulk/http-request/refusal.ts'
import { problemOfName } from '../../store/names.ts'
import { CliError } from '../cli-error.ts'
import { readJsonLines } from '../ndjson.ts'
import { isLocalHost } from './private-hosts.ts'

/** One line of the file: a call, under its own id or the number of its line. */
export interface NumberedCall {
  readonly id: string
  readonly payload: HttpRequestPayload
}

/** What has to be known of the file before its first call is made. */
export interface CallsFile {
  readonly path: string
  readonly count: number
  /** Names this content at this place: the same file again is the same work. */
  readonly digest: string
  /** Hosts with their ports, as the URLs have them. */
  readonly hosts: ReadonlySet<string>
  /** All of them are this machine. */
  readonly isLocal: boolean
}

const settings = { maxRequestBytes: 64 * 1024 * 1024, userAgent: 'sluice' }

/** Reads it all once, and refuses it for the first line that could not be performed: half a run helps nobody. */
export async function inspectCalls(path: string): Promise<CallsFile> {
  if (path === '-') throw new CliError('usage', 'sluice run needs a file: what it reads must be there when it goes on')
  const digest = createHash('sha256').update(`${await realPath(path)}\n`)
  const hosts = new Set<string>()
  const ids = new Set<string>()
  let count = 0
  for await (const { line, value } of readJsonLines(path, { onBytes: (chunk) => digest.update(chunk) })) {
    const place = `${path}:${line}`
    const { id, payload } = toCall(value, line, place)
    if (ids.has(id)) throw new CliError('usage', `${place}: has the id ${JSON.stringify(id)} of an earlier line`)
    ids.add(id)
    hosts.add(hostOf(payload, place))
    count += 1
  }
  return { path, count, digest: digest.digest('hex').slice(0, 16), hosts, isLocal: [...hosts].every(isLocalHost) }
}

/** The calls in their order, as jobs. */
export async function* readCalls(path: string): AsyncGenerator<NumberedCall> {
  for await (const { line, value } of readJsonLines(path)) yield toCall(value, line, `${path}:${line}`)
}

function toCall(value: unknown, line: number, place: string): NumberedCall {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(
      'usage',
      `${place}: must be an object such as {"method":"GET","url":"https://api.example.com/1"}`,
    )
  }
  const { id = String(line), ...payload } = value as { id?: unknown } & HttpRequestPayload
  const problem = problemOfName(typeof id === 'number' ? String(id) : id)
  if (problem !== undefined) throw new CliError('usage', `${place}: id ${problem}`)
  return { id: String(id), payload }
}

function hostOf(payload: HttpRequestPayload, place: string): string {
  try {
    return readPayload(payload, settings).call.url.host
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new CliError('usage', `${place}: ${error.message}`)
  }
}

async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    throw new CliError('usage', `${path}: there is no such file`)
  }
}
