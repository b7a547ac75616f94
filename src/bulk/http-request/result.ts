import type { AnswerHeaders } from '../../limits/answer-headers.ts'
import type { AnswerBody } from './answer-body.ts'

/** What a job of type `http.request` returns. Plain JSON. */
export interface HttpRequestResult {
  readonly status: number
  /** Those that say something about the answer, names in lower case. Cookies are not among them. */
  readonly headers: Readonly<Record<string, string>>
  /** What `body` is: a JSON value, text, bytes in base64, or nothing (`null`). */
  readonly bodyType: 'json' | 'text' | 'base64' | 'empty'
  readonly body: unknown
  /** The body is longer than `maxResponseBytes`; this is its beginning. */
  readonly truncated: boolean
  /** Bytes of the body as received, and as decoded. */
  readonly wireBytes: number
  readonly decodedBytes: number
  /** Connecting, sending and receiving, over all redirects; without the time in which the limits made it wait. */
  readonly durationMs: number
  readonly redirects: number
}

const headersOfInterest = new Set([
  'age',
  'cache-control',
  'content-disposition',
  'content-language',
  'content-location',
  'content-range',
  'content-type',
  'date',
  'deprecation',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'server-timing',
  'sunset',
  'traceparent',
  'x-correlation-id',
  'x-github-request-id',
  'x-request-id',
  'request-id',
])

export function resultOf(
  answer: { status: number; headers: AnswerHeaders; body: AnswerBody },
  way: { durationMs: number; redirects: number },
): HttpRequestResult {
  const { status, headers, body } = answer
  return {
    status,
    headers: ofInterest(headers, body.isDecoded),
    ...bodyValue(body, headers),
    truncated: body.isTruncated,
    wireBytes: body.wireBytes,
    decodedBytes: body.bytes.length,
    durationMs: Math.round(way.durationMs),
    redirects: way.redirects,
  }
}

/** The body as text, for what wants to read a reason in it; nothing where it is not text. */
export function textOf(body: AnswerBody, headers: AnswerHeaders): string {
  return (body.isDecoded && decodeText(body, contentTypeOf(headers))) || ''
}

function ofInterest(headers: AnswerHeaders, isDecoded: boolean): Record<string, string> {
  const chosen: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    // The encoding matters only to who must undo it.
    const isWanted =
      headersOfInterest.has(name) || /^(x-)?rate-?limit(-|$)/.test(name) || (name === 'content-encoding' && !isDecoded)
    if (isWanted && value !== undefined) chosen[name] = typeof value === 'string' ? value : value.join(', ')
  }
  return chosen
}

function bodyValue(body: AnswerBody, headers: AnswerHeaders): Pick<HttpRequestResult, 'bodyType' | 'body'> {
  if (body.bytes.length === 0) return { bodyType: 'empty', body: null }
  const type = contentTypeOf(headers)
  const text = body.isDecoded ? decodeText(body, type) : undefined
  if (text === undefined) return { bodyType: 'base64', body: body.bytes.toString('base64') }
  if (isJson(type.name) && !body.isTruncated) {
    try {
      return { bodyType: 'json', body: JSON.parse(text) }
    } catch {
      // Says it is JSON and is not: text, as it came.
    }
  }
  return { bodyType: 'text', body: text }
}

interface ContentType {
  readonly name: string
  readonly charset: string
}

function contentTypeOf(headers: AnswerHeaders): ContentType {
  const [name = '', ...parameters] = String(headers['content-type'] ?? '')
    .toLowerCase()
    .split(';')
  const charset = parameters.map((parameter) => /^\s*charset\s*=\s*"?([^\s"]+)"?\s*$/.exec(parameter)?.[1])
  return { name: name.trim(), charset: charset.find((each) => each !== undefined) ?? 'utf-8' }
}

function isJson(type: string): boolean {
  return /^application\/json$|^text\/json$|\+json$/.test(type)
}

/** What has no type at all is text when it can be. */
function isTextual(type: string): boolean {
  return (
    type === '' ||
    isJson(type) ||
    /^text\/|\+(xml|yaml)$/.test(type) ||
    /^application\/(xml|yaml|x-yaml|javascript|graphql|x-www-form-urlencoded|x-ndjson|ndjson|jsonl|sql)$/.test(type)
  )
}

/** Undefined where it is not text, says so wrongly, or is in an alphabet that is not known. */
function decodeText(body: AnswerBody, { name, charset }: ContentType): string | undefined {
  if (!isTextual(name)) return undefined
  try {
    // As a stream, a letter that was cut in half at the end is left out instead of being an error.
    return new TextDecoder(charset, { fatal: true }).decode(body.bytes, { stream: body.isTruncated })
  } catch {
    return undefined
  }
}
