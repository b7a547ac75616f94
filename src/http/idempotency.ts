import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { StoredAnswer } from '../store/idempotency.ts'
import { problemOfName } from '../store/names.ts'
import { type Context, callerOf } from './context.ts'
import { invalidField, Problem } from './problem.ts'

/** The Idempotency-Key of a request, written as a structured string (`"8e03…"`) or bare; undefined without one. */
export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const header = request.headers['idempotency-key']
  if (header === undefined) return undefined
  const key = String(header).replace(/^"(.*)"$/, '$1')
  const problem = problemOfName(key)
  if (problem) throw invalidField('headers.idempotency-key', problem)
  return key
}

/** Of values of any kind: the same digest if and only if they are the same. */
function digestOf(...values: unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values, sortedKeys)).digest('hex')
}

/** Two objects that differ in the order of their fields are the same request. */
function sortedKeys(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** Of one request under a key: the same again if and only if the same caller sends the same body under the same key. */
export function requestDigest(request: FastifyRequest, key: string): string {
  return digestOf(callerOf(request).id, key, digestOf(request.body))
}

/**
 * Does something once for a key, whoever repeats it: a repeat gets the answer of the first, one that comes before that
 * is told to wait, and another request under the same key is refused. What fails can be tried again.
 */
export async function answerOnce(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  key: string,
  perform: () => Promise<StoredAnswer>,
): Promise<FastifyReply> {
  const place = digestOf(callerOf(request).id, request.routeOptions.url, request.params, key)
  const fingerprint = digestOf(request.body)
  const taken = await context.idempotency.take(place, fingerprint)
  if (taken.word === 'other') {
    throw new Problem('idempotency-mismatch', 'This Idempotency-Key was used with another body. Choose a new one.')
  }
  if (taken.word === 'running') {
    throw new Problem('conflict', 'The first request with this Idempotency-Key has not been answered yet.', {
      retryAfterSeconds: 1,
    })
  }
  if (taken.word === 'answered') return send(reply.header('idempotency-replayed', 'true'), taken.answer)
  try {
    const answer = await perform()
    await context.idempotency.answer(place, fingerprint, answer)
    return send(reply, answer)
  } catch (error) {
    await context.idempotency.release(place).catch(() => {})
    throw error
  }
}

export function send(reply: FastifyReply, { status, body, location }: StoredAnswer): FastifyReply {
  if (location !== undefined) reply.header('location', location)
  return reply.code(status).type('application/json; charset=utf-8').serializer(String).send(body)
}
