import type { FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { z } from 'zod'
import { type FieldProblem, Problem } from './problem.ts'

// A body of nonsense can be wrong in thousands of places; the first ones say enough.
const MOST_SHOWN = 20

/** A part of the request that does not fit its schema, as a problem that names each field and what is allowed. */
export function problemOfValidation(
  validation: readonly FastifySchemaValidationError[],
  context: string | undefined,
  request: FastifyRequest,
): Problem {
  const part = context === 'querystring' ? 'query' : (context ?? 'body')
  const schema = partOf(request, context)
  const errors = validation.slice(0, MOST_SHOWN).flatMap((each) => fieldProblems(each, part, schema))
  const more = validation.length - MOST_SHOWN
  const [first] = errors
  const detail = `${first?.path ?? part} ${first?.problem ?? 'is not valid'}`
  return new Problem('invalid-request', more > 0 ? `${detail} (and ${more} more)` : detail, { errors })
}

function partOf(request: FastifyRequest, context: string | undefined): unknown {
  const schema = request.routeOptions.schema as Record<string, unknown> | undefined
  const part = schema?.[context ?? 'body']
  const content = (part as { content?: Record<string, { schema: unknown }> } | undefined)?.content
  return content?.['application/json']?.schema ?? part
}

function fieldProblems(issue: FastifySchemaValidationError, part: string, schema: unknown): FieldProblem[] {
  const steps = issue.instancePath.split('/').slice(1).filter(Boolean)
  const path = [part, ...steps].join('.')
  const { keys } = issue.params as { keys?: unknown }
  if (issue.keyword === 'unrecognized_keys' && Array.isArray(keys)) {
    const known = knownFields(schema, steps)
    const allowed = known === undefined ? '' : `; known are ${known.length > 0 ? known.join(', ') : 'none'}`
    return keys
      .slice(0, MOST_SHOWN)
      .map((key) => ({ path: `${path}.${key}`, problem: `is not a known field${allowed}` }))
  }
  return [{ path, problem: problemOf(issue.message ?? 'Is not valid') }]
}

const kinds = new Map([
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['string', 'text'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'an object'],
])

/** What Zod says of a wrong type, in the words of the other problems. */
function problemOf(message: string): string {
  const [, expected = '', received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? []
  const kind = kinds.get(expected)
  if (kind === undefined) return `${message.charAt(0).toLowerCase()}${message.slice(1)}`
  return received === 'undefined' ? `is missing; it must be ${kind}` : `must be ${kind}`
}

/** The names an object of the schema may have at a place; undefined where it is no plain object. */
function knownFields(schema: unknown, steps: readonly string[]): string[] | undefined {
  let at = unwrap(schema)
  for (const step of steps) {
    if (at instanceof z.ZodObject && Object.hasOwn(at.shape, step)) at = unwrap(at.shape[step])
    else if (at instanceof z.ZodArray) at = unwrap(at.element)
    else return undefined
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : undefined
}

function unwrap(schema: unknown): unknown {
  let at = schema
  while (at instanceof z.ZodOptional || at instanceof z.ZodNullable || at instanceof z.ZodDefault) at = at.unwrap()
  return at
}
