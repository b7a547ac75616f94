import { checkOptions, integer, oneOf, optional, type Report, type Rule, show } from '../../assert.ts'
import { InvalidOptionsError } from '../../errors.ts'
import { Refusal } from './refusal.ts'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const
export type HttpMethod = (typeof methods)[number]

/** One status, or a hundred of them. */
export type ExpectedStatus = number | '1xx' | '2xx' | '3xx' | '4xx' | '5xx'

/** What a job of type `http.request` asks for. */
export interface HttpRequestPayload {
  /** @default 'GET' */
  method?: HttpMethod
  /** Absolute, http or https, without user name and password. */
  url: string
  /** Hop-by-hop headers, `host`, `content-length` and `accept-encoding` are refused: the processor sets them. */
  headers?: Readonly<Record<string, string>>
  /** Text is sent as it is, an object or array as JSON. GET and HEAD have none. */
  body?: string | object
  /**
   * The statuses that make the job succeed. A redirect that is expected is not followed.
   * @default ['2xx']
   */
  expect?: readonly ExpectedStatus[]
}

/** A call that is ready to be sent. */
export interface Call {
  readonly method: HttpMethod
  readonly url: URL
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

export interface Request {
  readonly call: Call
  readonly expect: readonly ExpectedStatus[]
}

const LONGEST_URL = 8_192
/** What most servers take for all headers together. */
const MOST_HEADER_BYTES = 16_384

const setByProcessor = 'must not be given: the processor sets it'
const hopByHop = 'must not be given: it belongs to the connection'
const refusedHeaders: ReadonlyMap<string, string> = new Map([
  ['host', setByProcessor],
  ['content-length', setByProcessor],
  ['accept-encoding', setByProcessor],
  ['connection', hopByHop],
  ['expect', hopByHop],
  ['http2-settings', hopByHop],
  ['keep-alive', hopByHop],
  ['proxy-authenticate', hopByHop],
  ['proxy-authorization', hopByHop],
  ['proxy-connection', hopByHop],
  ['te', hopByHop],
  ['trailer', hopByHop],
  ['transfer-encoding', hopByHop],
  ['upgrade', hopByHop],
])

const payloadRules = {
  method: oneOf(methods, { default: 'GET' }),
  url: readUrl,
  headers: readHeaders,
  body: readBody,
  expect: optional(readExpect),
}

/** Throws a Refusal that names every field that is wrong and what is allowed. */
export function readPayload(payload: unknown, settings: { maxRequestBytes: number; userAgent: string }): Request {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) {
    throw new Refusal(`The payload must be an object such as {"url":"https://api.example.com"}, not ${show(payload)}.`)
  }
  const { method, url, headers, body, expect = ['2xx'] } = checkPayload(payload, settings.maxRequestBytes)
  const all: Record<string, string> = {
    accept: '*/*',
    'accept-encoding': 'gzip, deflate, br',
    'user-agent': settings.userAgent,
    ...(body && { 'content-type': body.contentType }),
    ...headers,
  }
  return { call: { method, url, headers: all, body: body?.text }, expect }
}

function checkPayload(payload: object, maxRequestBytes: number) {
  try {
    return checkOptions('payload', payload, payloadRules, ({ method, body }, report) => {
      if (body === undefined) return
      const bytes = Buffer.byteLength(body.text)
      if (method === 'GET' || method === 'HEAD') report('body', `must not be given with ${method}`)
      if (bytes > maxRequestBytes) report('body', `must have at most ${maxRequestBytes} bytes, not ${bytes}`)
    })
  } catch (error) {
    if (!(error instanceof InvalidOptionsError)) throw error
    const problems = error.problems.map(({ path, problem }) => `${path} ${problem}`)
    throw new Refusal(`The payload cannot be sent: ${problems.join('; ')}.`)
  }
}

/** Never shows the value: URLs hold passwords and tokens. */
function readUrl(value: unknown, path: string, report: Report): URL {
  const problem = problemOfUrl(value)
  if (problem !== undefined) report(path, problem)
  return problem === undefined ? new URL(value as string) : new URL('http://invalid')
}

function problemOfUrl(value: unknown): string | undefined {
  if (value === undefined) return 'is required'
  if (typeof value !== 'string') return `must be text, not ${show(value)}`
  if (value.length > LONGEST_URL) return `must have at most ${LONGEST_URL} characters, not ${value.length}`
  // URL drops tabs and line ends without a word: what was checked by whoever made the payload is not what would be sent.
  if (/[\s\p{Cc}]/u.test(value)) return 'must not hold spaces or control characters'
  if (!URL.canParse(value)) return 'must be an absolute URL such as "https://api.example.com/path"'
  const { protocol, username, password } = new URL(value)
  if (protocol !== 'http:' && protocol !== 'https:') return `must start with http:// or https://, not ${protocol}`
  if (username !== '' || password !== '') return 'must not hold a user name or password: give an authorization header'
  return undefined
}

/** Never shows a value, for the same reason. */
function readHeaders(value: unknown, path: string, report: Report): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  if (value === undefined) return headers
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report(path, `must be an object of texts, not ${show(value)}`)
    return headers
  }
  let bytes = 0
  for (const [given, content] of Object.entries(value)) {
    const name = given.toLowerCase()
    const problem = problemOfHeader(name, content) ?? (name in headers ? 'must not be given twice' : undefined)
    if (problem !== undefined) report(`${path}[${show(given)}]`, problem)
    else headers[name] = content
    bytes += given.length + String(content).length + 4
  }
  if (bytes > MOST_HEADER_BYTES) report(path, `must have at most ${MOST_HEADER_BYTES} bytes, not ${bytes}`)
  return headers
}

function problemOfHeader(name: string, content: unknown): string | undefined {
  if (!/^[!#$%&'*+\-.^_`|~0-9a-z]+$/.test(name)) return 'must have a name of letters, digits and "-"'
  if (typeof content !== 'string') return `must be text, not ${show(content)}`
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(content)) return 'must not hold line ends, control characters or beyond Latin-1'
  return refusedHeaders.get(name)
}

interface Body {
  readonly text: string
  readonly contentType: string
}

function readBody(value: unknown, path: string, report: Report): Body | undefined {
  if (value === undefined) return undefined
  if (typeof value === 'string') return { text: value, contentType: 'text/plain; charset=utf-8' }
  if (typeof value === 'object' && value !== null) {
    return { text: JSON.stringify(value), contentType: 'application/json' }
  }
  report(path, `must be text, an object or an array, not ${show(value)}`)
  return undefined
}

const statusRule: Rule<number> = integer({ min: 100, max: 599 })

function readExpect(value: unknown, path: string, report: Report): readonly ExpectedStatus[] {
  if (!Array.isArray(value) || value.length === 0) {
    report(path, `must be a list of statuses such as [200, "2xx"], not ${Array.isArray(value) ? '[]' : show(value)}`)
    return []
  }
  for (const [index, each] of value.entries()) {
    if (typeof each === 'number') statusRule(each, `${path}[${index}]`, report)
    else if (!/^[1-5]xx$/.test(String(each))) {
      report(`${path}[${index}]`, `must be a status such as 200 or "2xx", not ${show(each)}`)
    }
  }
  return value
}
