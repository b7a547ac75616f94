import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { PROBLEM_TYPE, Problem, type ProblemKind } from './problem.ts'
import { problemOfSluiceError } from './sluice-problems.ts'
import { problemOfValidation } from './validation.ts'

/** Whatever was thrown becomes a problem document; what is our own fault is logged and not shown. */
export function handleError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = toProblem(error, request)
  if (problem.statusCode >= 500) request.log.error({ err: error }, 'a request failed')
  return sendProblem(problem, request, reply)
}

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // As text, so that no response schema of the route takes part in it.
  const body = JSON.stringify(problem.document(request.id))
  return reply.code(problem.statusCode).headers(problem.headers).type(PROBLEM_TYPE).send(body)
}

export function handleNotFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const detail = `There is no ${request.method} of this path; /docs lists what there is.`
  return sendProblem(new Problem('not-found', detail), request, reply)
}

/** Fastify's own errors: their messages are about the request and may be shown. */
const kindsOfStatuses: Readonly<Record<number, ProblemKind>> = {
  400: 'invalid-request',
  404: 'not-found',
  408: 'request-timeout',
  413: 'too-large',
  414: 'uri-too-long',
  415: 'unsupported-media-type',
}

function toProblem(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) return error
  if (hasZodFastifySchemaValidationErrors(error)) {
    return problemOfValidation(error.validation, error.validationContext, request)
  }
  const known = problemOfSluiceError(error)
  if (known) return known
  const { statusCode, code, message } = error as Partial<FastifyError>
  const kind = code?.startsWith('FST_ERR_') ? kindsOfStatuses[statusCode ?? 500] : undefined
  if (kind !== undefined) return new Problem(kind, explain(code ?? '', message ?? ''), { cause: error })
  return new Problem('internal', 'This is a fault of the server. It has been logged under the id given as instance.')
}

function explain(code: string, message: string): string {
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return 'The Content-Type must be application/json, or application/x-ndjson where the route takes a stream of jobs.'
  }
  if (code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return 'The body is empty, and its Content-Type says it is JSON.'
  if (code === 'FST_ERR_CTP_INVALID_JSON_BODY')
    return 'The body is not JSON, or has a key that is not allowed (__proto__).'
  return message
}
