/**
 * What goes wrong is answered as a problem document (RFC 9457): `type` is stable and for programs, `detail` is for
 * people, `errors` names each field and what is allowed there.
 */
export const problemKinds = {
  'invalid-request': { status: 400, title: 'The request is not valid' },
  unauthorized: { status: 401, title: 'A valid API key is needed' },
  forbidden: { status: 403, title: 'This key may not do that' },
  'not-found': { status: 404, title: 'There is no such thing' },
  'request-timeout': { status: 408, title: 'The request took too long to arrive' },
  conflict: { status: 409, title: 'The present state does not allow it' },
  'too-large': { status: 413, title: 'The request is too large' },
  'uri-too-long': { status: 414, title: 'The path is too long' },
  'unsupported-media-type': { status: 415, title: 'This kind of body is not understood' },
  'idempotency-mismatch': { status: 422, title: 'The Idempotency-Key was used for another request' },
  'too-many-requests': { status: 429, title: 'Too many requests' },
  'queue-full': { status: 429, title: 'The queue is full' },
  'headers-too-large': { status: 431, title: 'The headers are too large' },
  internal: { status: 500, title: 'Something went wrong here' },
  unavailable: { status: 503, title: 'Not available at the moment' },
  'outcome-unknown': { status: 504, title: 'It is not known whether it happened' },
} as const

export type ProblemKind = keyof typeof problemKinds

/** A field of the request and what is wrong with it, in the words of what is allowed. */
export interface FieldProblem {
  /** `body.jobs.3.type`, `query.limit`, `params.queue`, `headers.idempotency-key`. */
  readonly path: string
  readonly problem: string
}

interface ProblemData {
  readonly errors?: readonly FieldProblem[]
  /** Sent as Retry-After. */
  readonly retryAfterSeconds?: number
  /** Further members of the document. */
  readonly members?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
  readonly cause?: unknown
}

/** Thrown by whatever handles a request; the error handler makes the document of it. */
export class Problem extends Error {
  readonly kind: ProblemKind
  readonly errors: readonly FieldProblem[]
  readonly headers: Readonly<Record<string, string>>
  readonly members: Readonly<Record<string, unknown>>

  constructor(kind: ProblemKind, detail: string, data: ProblemData = {}) {
    super(detail, data.cause === undefined ? undefined : { cause: data.cause })
    this.kind = kind
    this.errors = data.errors ?? []
    this.members = data.members ?? {}
    const retryAfter = data.retryAfterSeconds
    this.headers = { ...data.headers, ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }) }
  }

  /** Fastify and its plugins look for it. */
  get statusCode(): number {
    return problemKinds[this.kind].status
  }

  document(requestId?: string): Record<string, unknown> {
    const { status, title } = problemKinds[this.kind]
    return {
      type: `urn:sluice:problem:${this.kind}`,
      title,
      status,
      detail: this.message,
      ...(this.errors.length > 0 ? { errors: this.errors } : {}),
      ...this.members,
      ...(requestId === undefined ? {} : { instance: `urn:sluice:request:${requestId}` }),
    }
  }
}

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8'

export function notFound(what: string): Problem {
  return new Problem('not-found', `There is no ${what}.`)
}

/** One field of the request that cannot be used. */
export function invalidField(path: string, problem: string): Problem {
  return new Problem('invalid-request', `${path} ${problem}`, { errors: [{ path, problem }] })
}
