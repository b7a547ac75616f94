import { EventSourceParserStream } from 'eventsource-parser/stream'
import { Agent, fetch, type RequestInit, type Response } from 'undici'
import { CliError } from './cli-error.ts'
import { defaultUrl } from './default-url.ts'
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

/** The HTTP API of a running server, with its problem documents as errors that a person is told. */
export class ApiClient {
  readonly #base: URL
  readonly #key: string | undefined
  // An upload lasts as long as its file and a stream as long as its action; the server ends what hangs.
  readonly #agent = new Agent({ headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 1_000 })

  constructor(server: { url: string; key: string | undefined }) {
    this.#base = parseBase(server.url)
    this.#key = server.key
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
    }
    return this.#json(await this.#send(path, init, query))
  }

  /** The bytes of an answer as they come. */
  async *download(path: string, query: Query = {}): AsyncGenerator<Uint8Array> {
    const response = await this.#send(path, { method: 'GET' }, query)
    if (response.body) yield* response.body as AsyncIterable<Uint8Array>
  }

  /** Server-sent events until the server ends them or the signal is aborted. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
    const response = await this.#send(path, { method: 'GET', headers: { accept: 'text/event-stream' }, signal })
    if (!response.body) return
    const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    for await (const { event, data } of events) yield { event, data: JSON.parse(data) as unknown }
  }

  async close(): Promise<void> {
    await this.#agent.close()
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
    let response: Response
    try {
      response = await fetch(url, { ...init, headers, dispatcher: this.#agent })
    } catch (error) {
      throw this.#unreachable(error)
    }
    if (!response.ok) throw await refusal(response)
    return response
  }

  async #json<Answer>(response: Response): Promise<Answer> {
    return (response.status === 204 ? undefined : await response.json()) as Answer
  }

  #unreachable(error: unknown): unknown {
    if (error instanceof CliError || (error as Error).name === 'AbortError') return error
    const { cause } = error as Error
    // What the body was made of could not be read: no fault of the server.
    if (cause instanceof CliError) return cause
    const why = cause instanceof Error ? ((cause as NodeJS.ErrnoException).code ?? cause.message) : String(error)
    return new CliError(
      'unreachable',
      `no answer from ${this.#base.origin} (${why}); start it with "sluice serve", or name another with --url or SLUICE_URL`,
      { cause: error },
    )
  }
}

function parseBase(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new CliError('usage', `--url must be a URL such as ${defaultUrl}, not ${JSON.stringify(url)}`)
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
