import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Action } from '../engine/actions/action.ts'
import { type InvalidJobError, isSluiceError } from '../errors.ts'
import { badLine, type NdjsonReader } from './ndjson.ts'
import { Problem } from './problem.ts'
import { problemOfSluiceError } from './sluice-problems.ts'

/**
 * How long a client that was refused in the middle of its body may go on sending it. Closing at once would take the
 * answer from it: what arrives at a closed socket makes the other side forget what it has not read yet.
 */
const LINGER_MS = 2_000

/** Where fields of an action stand that a stream cannot have in its body. */
const places: Readonly<Record<string, string>> = {
  'body.webhook.url': 'query.webhookUrl',
  'body.webhook.secret': 'headers.sluice-webhook-secret',
}

export interface Upload {
  readonly action: Action
  /** What the action had received before; undefined if it did not exist. */
  readonly receivedBefore: number | undefined
}

/**
 * Submits what a body of NDJSON brings. If it is broken off, the problem says at which line, and how many jobs the action
 * has received: they stay, and the same request again goes on after them.
 */
export async function uploadJobs<T>(
  request: FastifyRequest,
  reply: FastifyReply,
  upload: Upload & { readonly reader: NdjsonReader },
  submit: () => Promise<T>,
): Promise<T> {
  const { reader } = upload
  try {
    const submitted = await submit()
    if (reader.mistake !== undefined) throw reader.mistake
    return submitted
  } catch (error) {
    throw await brokenOff(request, upload, problemOf(error, request, reader))
  } finally {
    drain(request, reply)
  }
}

/** What ended a submit too early, with what the action has received until then. */
export async function brokenOff(
  request: FastifyRequest,
  { action, receivedBefore }: Upload,
  error: unknown,
): Promise<unknown> {
  const view = await action.view().catch(() => undefined)
  if (!view) return error
  request.hasChanged = view.received !== receivedBefore
  const problem = error instanceof Problem ? error : problemOfSluiceError(error)
  return problem ? withMembers(problem, { action: view.id, accepted: view.received }) : error
}

function problemOf(error: unknown, request: FastifyRequest, reader: NdjsonReader): unknown {
  if (error instanceof Problem) return error
  if (isSluiceError(error) && error.code === 'SLUICE_INVALID_JOB') {
    const { index, problem } = error as InvalidJobError
    return badLine(index === undefined ? reader.line : reader.lineOf(index), `cannot be submitted: ${problem}`)
  }
  const problem = problemOfSluiceError(error)
  if (problem) return withPlaces(problem)
  if (request.raw.errored || request.raw.destroyed) {
    return new Problem('invalid-request', 'The body ended before it was complete.', { cause: error })
  }
  return error
}

function withPlaces(problem: Problem): Problem {
  const errors = problem.errors.map(({ path, problem: text }) => ({ path: places[path] ?? path, problem: text }))
  return new Problem(problem.kind, problem.message, { ...problem, errors })
}

function withMembers(error: Problem, members: Readonly<Record<string, unknown>>): Problem {
  return new Problem(error.kind, error.message, { ...error, members: { ...error.members, ...members }, cause: error })
}

/** Lets what is still coming run out, and cuts it off when it does not. */
function drain({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (raw.complete || raw.destroyed) return
  raw.resume()
  reply.raw.once('finish', () => {
    const timer = setTimeout(() => raw.destroy(), LINGER_MS)
    const stop = () => clearTimeout(timer)
    if (raw.complete) stop()
    else raw.once('end', stop).once('close', stop)
  })
}
