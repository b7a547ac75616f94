import { EventSourceParserStream } from 'eventsource-parser/stream'
import { Agent, fetch, type RequestInit, type Response } from 'undici'
import { CliError } from './cli-error.ts'
import { defaultUrl } from './default-url.ts'
import { sayDuration } from './duration.ts'
import { type ExitName, exitOfStatus } from './exit-codes.ts'

export interface ServerEvent {
  readonly event: string | undefined
  readonly data: unknown
}

interface ProblemDocument {
  readonly title?: string
  readonly detail?: string
  readonly errors?: readonly { readonly path?: string; readonly detail?: string; readonly problem?: string }[]
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface UploadOptions {
  readonly query?: Query
  readonly headers?: Readonly<Record<string, string>>
  /** Breaks it off; what has arrived by then stays with the server. */
  readonly signal?: AbortSignal
}

/**
 * A server that says nothing for this long hangs, or the network to it does. One that works has answered by then: it gives
 * up a request after 40 s at the latest, and a stream that has nothing to say says so every 15 s.
 */
const SILENCE_MS = 60_000

/** How an idle connection is kept: a command that asks several times asks at once. */
const KEEP_ALIVE_MS = 1_000

/** The HTTP API of a running server, with its problem documents as errors that a person is told. */
export class ApiClient {
  readonly #base: URL
  readonly #key: string | undefined
  readonly #silenceMs: number
  readonly #agent: Agent
  readonly #uploads: Agent

  constructor(server: { url: string; key: string | undefined; silenceMs?: number }) {
    const { url, key, silenceMs = SILENCE_MS } = server
    this.#base = parseBase(url)
    this.#key = key
    this.#silenceMs = silenceMs
    const patience = { headersTimeout: silenceMs, bodyTimeout: silenceMs, keepAliveTimeout: KEEP_ALIVE_MS }
    this.#agent = new Agent(patience)
    // An upload waits for room in its queue for as long as there is none, and hears nothing meanwhile.
    this.#uploads = new Agent({ ...patience, headersTimeout: 0 })
  }

  async get<Answer>(path: string, query: Query = {}): Promise<Answer> {
    return this.#json(await this.#send(path, { method: 'GET' }, query))
  }

  async post<Answer>(path: string, body?: unknown, query: Query = {}): Promise<Answer> {
    return this.#json(await this.#send(path, withJson('POST', body), query))
  }

  async put<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.#json(await this.#send(path, withJson('PUT', body)))
  }

  async patch<Answer>(path: string, body: unknown): Promise<Answer> {
    return this.#json(await this.#send(path, withJson('PATCH', body)))
  }

  async delete<Answer>(path: string): Promise<Answer> {
    return this.#json(await this.#send(path, { method: 'DELETE' }))
  }

  /** Sends a body of any length as it comes. */
  async upload<Answer>(
    path: string,
    body: AsyncIterable<Uint8Array>,
    { query = {}, headers = {}, signal }: UploadOptions = {},
  ): Promise<Answer> {
    const init = {
      method: 'POST',
      body,
      duplex: 'half' as const,
      headers: { 'content-type': 'application/x-ndjson', ...headers },
      ...(signal === undefined ? {} : { signal }),
      dispatcher: this.#uploads,
    }
    return this.#json(await this.#send(path, init, query))
  }

  /** The bytes of an answer of JSON lines as they come. */
  async *download(path: string, query: Query = {}): AsyncGenerator<Uint8Array> {
    const response = await this.#send(path, { method: 'GET' }, query)
    this.#expect(response, 'application/x-ndjson')
    try {
      if (response.body) yield* response.body as AsyncIterable<Uint8Array>
    } catch (error) {
      throw this.#unreachable(error)
    }
  }

  /**
   * Server-sent events until the server ends them or the signal is aborted.
   * @param onOpen - Called when the server has answered; events may be long in coming.
   */
  async *events(
    path: string,
    { signal, onOpen }: { signal: AbortSignal; onOpen?: () => void },
  ): AsyncGenerator<ServerEvent> {
    const response = await this.#send(path, { method: 'GET', headers: { accept: 'text/event-stream' }, signal })
    this.#expect(response, 'text/event-stream')
    onOpen?.()
    if (!response.body) return
    const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    try {
      for await (const { event, data } of events) yield { event, data: JSON.parse(data) as unknown }
    } catch (error) {
      throw signal.aborted ? error : this.#unreachable(error)
    }
  }

  /** Ends what is still under way: nobody waits for it any more. */
  async close(): Promise<void> {
    await Promise.all([this.#agent.destroy(), this.#uploads.destroy()])
  }

  async #send(path: string, init: RequestInit, query: Query = {}): Promise<Response> {
    const url = new URL(path.replace(/^\//, ''), this.#base)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, String(value))
    const headers = {
      accept: 'application/json',
      ...(this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` }),
      ...(init.headers as Record<string, string> | undefined),
    }
    try {
      const response = await fetch(url, { dispatcher: this.#agent, ...init, headers })
      if (response.ok) return response
      throw await refusal(response)
    } catch (error) {
      throw init.signal?.aborted ? error : this.#unreachable(error)
    }
  }

  async #json<Answer>(response: Response): Promise<Answer> {
    if (response.status === 204) return undefined as Answer
    this.#expect(response, 'application/json')
    try {
      return (await response.json()) as Answer
    } catch (error) {
      throw this.#unreachable(error)
    }
  }

  /** A page for people, say, comes from a server of something else. */
  #expect(response: Response, type: string): void {
    const found = response.headers.get('content-type')?.split(';', 1)[0] ?? 'nothing'
    if (response.status === 204 || found === type) return
    throw new CliError(
      'usage',
      `${this.#base.origin} answers with ${found} where "sluice serve" answers with ${type}; name another with --url or SLUICE_URL`,
    )
  }

  /** @param error - What came instead of an answer, or of the rest of one. */
  #unreachable(error: unknown): unknown {
    if (error instanceof CliError) return error
    const { cause } = error as Error
    // What the body was made of could not be read: no fault of the server.
    if (cause instanceof CliError) return cause
    const { code, message } =
      cause instanceof Error ? (cause as NodeJS.ErrnoException) : (error as Error & { code?: string })
    const isSilent = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT'
    const why = isSilent ? `it has said nothing for ${sayDuration(this.#silenceMs)}` : causeWords(code, message)
    return new CliError(
      'unreachable',
      `no answer from ${this.#base.origin} (${why}); start it with "sluice serve", or name another with --url or SLUICE_URL`,
      { cause: error },
    )
  }
}

/** `ECONNREFUSED` says more than its message; of a connection that was lost it is the other way round. */
function causeWords(code: string | undefined, message: string): string {
  return code === undefined || code === 'UND_ERR_SOCKET' ? message : code
}

function parseBase(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new CliError('usage', `--url must be a URL such as ${defaultUrl}, not ${JSON.stringify(url)}`)
  }
  if (base.username !== '' || base.password !== '') {
    throw new CliError(
      'usage',
      '--url must hold no user name and no password; what lets in is the key of --key or SLUICE_KEY',
    )
  }
  if (!base.pathname.endsWith('/')) base.pathname += '/'
  return base
}

function withJson(method: string, body: unknown): RequestInit {
  if (body === undefined) return { method }
  return { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
}

/** What the server said in its problem document, with what to do where that is the caller's matter. */
async function refusal(response: Response): Promise<CliError> {
  const text = await response.text()
  let problem: ProblemDocument = {}
  try {
    problem = JSON.parse(text) as ProblemDocument
  } catch {
    // Something before the server has answered, a proxy perhaps: its status has to do.
  }
  const exit = exitOfStatus(response.status)
  const fields = (problem.errors ?? []).map(
    ({ path, detail, problem: what }) => `${path ?? ''} ${detail ?? what ?? ''}`,
  )
  const said = problem.detail ?? problem.title ?? `the server answered ${response.status} ${response.statusText}`
  const all = [said, ...fields.filter((field) => field.trim() !== '' && !said.includes(field))].join('; ')
  const todo = hintFor(exit, said)
  return new CliError(exit, all + todo, { details: { ...problem, status: response.status } })
}

/** What the caller can do about it on a command line. */
function hintFor(exit: ExitName, said: string): string {
  if (exit === 'notAllowed') return ' (give a key that may with --key or SLUICE_KEY)'
  if (exit === 'notFound' && said.includes('no queue')) return ' (name another with --queue or SLUICE_QUEUE)'
  return ''
}
